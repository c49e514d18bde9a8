#pragma once

#include <optional>
#include <vector>

#include "sim/plan/scenario.hpp"
#include "sim/reliability/expected_run.hpp"
#include "sim/reliability/reliability.hpp"
#include "sim/reliability/walk_setup.hpp"

namespace orrery {

/// What failures make of time by the closed form, with one tier and a spare always at hand.
class FailureTime {
 public:
  /// `per_day`: failures of the job by cause, each `factor` times as often.
  FailureTime(const std::vector<WalkCause>& causes, const std::vector<double>& per_day,
              double factor = 1.0);

  double unplanned() const { return unplanned_; }  ///< A second.
  /// Time that passes for each second of steps: time_over_work() of what is not planned, times what
  /// announced stops take. `start`: of all processes, with the reading of a checkpoint; `stop`:
  /// from an announcement to the next step.
  double over_steps(const CheckpointCycle& cycle, Seconds start, Seconds stop) const;

 private:
  double unplanned_ = 0.0, planned_ = 0.0;
  double found_ = 1.0;  ///< E[exp(-L detection)].
};

/// The least time that passes for each second of a plan's steps, whatever a step takes: a
/// checkpoint in the store at the best interval, a spare always at hand, writes that slow no step.
/// It depends on the plan by how its state is sharded, which says how long steps stand, how long a
/// write takes and how long it takes to read. `store`: of the file system; else the profile's.
double least_time_over_steps(const Scenario& scenario, const Reliability& profile,
                             std::optional<BytesPerSecond> store);

/// The same with so many spare units (nothing: always one), elastic or not, in the long run:
/// policy_shares(). A job without replicas takes its share of their tokens in the same time; one
/// that has one replica is not elastic.
double least_time_over_steps(const Scenario& scenario, const Reliability& profile,
                             std::optional<BytesPerSecond> store, std::optional<int> spares,
                             bool elastic);

}  // namespace orrery
