#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/economics.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/reliability/reliability.hpp"

namespace orrery {

/// A quantity that is the least in the best plan. All rise with the step time of a given plan, so
/// that a bound of the time bounds them.
enum class Goal {
  step_time,
  tokens_per_s_per_gpu,  ///< Counted as GPU-seconds a token.
  cost_per_token,        ///< Rent.
  energy_per_token,
  gpus,           ///< Fewest that meet a deadline.
  training_time,  ///< All steps for a number of tokens: batches differ.
  goodput,        ///< Seconds for each token that lasts, with failures.
};
const std::vector<std::string>& goal_names();
/// Errors: an unknown one (with the nearest).
Goal parse_goal(const std::string& text);

/// Keys of economics that must be known for a score.
const std::vector<std::string>& prices_of(Goal goal);

/// The longest time that a training may take.
struct Deadline {
  Seconds time;
  double tokens = 0.0;
};

/// Failures meanwhile, and the speed at which the file system takes checkpoints; the profile
/// decides what is left open.
struct AssumedFailures {
  Reliability profile;
  std::optional<BytesPerSecond> store;
  std::optional<int> spares;  ///< Nodes, or NVLink domains; nothing: unlimited.
  bool elastic = false;       ///< The job goes on without the replicas whose units are away.
};

class Objective {
 public:
  /// `failures`: needed by goodput.
  explicit Objective(Goal goal, const std::optional<Deadline>& deadline = {},
                     const std::optional<AssumedFailures>& failures = {})
      : goal_{goal}, deadline_{deadline}, failures_{failures} {}

  Goal goal() const { return goal_; }
  /// The less the better; infinite where the deadline is missed. Rises with `time`: of goodput in
  /// proportion, as least_time_over_steps() does not depend on it. `economics`: of the scenario's
  /// GPU; needed by cost and energy alone.
  double score(const Scenario& scenario, Seconds time, const Economics* economics) const;

 private:
  Goal goal_;
  std::optional<Deadline> deadline_;
  std::optional<AssumedFailures> failures_;
};

}  // namespace orrery
