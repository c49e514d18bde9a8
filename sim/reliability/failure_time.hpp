#pragma once

#include <optional>
#include <vector>

#include "sim/plan/scenario.hpp"
#include "sim/reliability/expected_run.hpp"
#include "sim/reliability/reliability.hpp"
#include "sim/reliability/replicate_setup.hpp"

namespace orrery {

/// The closed form of time lost to failures, with one tier and unlimited spares.
class FailureTime {
 public:
  /// The rates of causes are `per_day`, for the whole job, times `factor`.
  FailureTime(const std::vector<ReplicateCause>& causes, const std::vector<double>& per_day,
              double factor = 1.0);

  double unplanned() const { return unplanned_; }  ///< Rate per second.
  /// Time that passes for each second of steps: time_over_work() of unplanned failures, times what
  /// announced stops take. `start`: time to start all processes and read a checkpoint; `stop`: time
  /// from an announcement to the next step.
  double over_steps(const CheckpointCycle& cycle, Seconds start, Seconds stop) const;

 private:
  double unplanned_ = 0.0, planned_ = 0.0;
  double found_ = 1.0;  ///< E[exp(-L detection)].
};

/// The least time that passes for each second of a plan's steps, whatever a step takes: a
/// checkpoint in the store at the best interval, unlimited spares, writes that slow no step. It
/// depends on the plan only by the sharding of its state, which sets the times to stall, write and
/// read. `store`: bandwidth of the file system; else the profile's.
double least_time_over_steps(const Scenario& scenario, const Reliability& profile,
                             std::optional<BytesPerSecond> store);

/// The same with `spares` units (nullopt: unlimited), elastic or not, for a run without end:
/// policy_shares(). A job without some groups of replicas takes its share of their tokens in the
/// same time; one that has one group is not elastic.
double least_time_over_steps(const Scenario& scenario, const Reliability& profile,
                             std::optional<BytesPerSecond> store, std::optional<int> spares,
                             bool elastic);

/// The spare units of a run of `length` that are paid for: `spares`, or without them as many as
/// cover `covered_share` of the time of the failures that a RunQuestion draws.
int paid_spares(const Scenario& scenario, const Reliability& profile, std::optional<int> spares,
                Seconds length);
/// Units that are idle in the job's racks and are rented as its first spares: as many as are away
/// for less than 1 - `covered_share` of the time. Others may have the rest.
int rented_idle_units(const Scenario& scenario, const Reliability& profile);
/// GPUs of spares and of these units, which cost as much.
int spare_gpus(const Scenario& scenario, const Reliability& profile, int spares);

}  // namespace orrery
