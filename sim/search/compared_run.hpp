#pragma once

#include <cmath>

#include "sim/reliability/training_run.hpp"
#include "sim/search/compared_plan.hpp"

namespace orrery {

/// The whole run of one of several plans.
struct ComparedRun {
  const ComparedPlan* plan = nullptr;
  TrainingRun run;  ///< Of as many tokens, replicates and the same seed as every other.
};

/// How many days `other` takes longer than `one`, replicate by replicate under the same failures,
/// and as far as their step times are known. Draws and prices are independent, and days grow with
/// the step, so that on either side of the mean
///
///     half^2 = (half of what failures draw)^2 + (1.645 sigma of StepDifference, over the run)^2
struct RunDifference {
  ChanceRange drawn;   ///< By failures alone.
  double steps = 0.0;  ///< sigma of the step times' difference, in days of the runs.

  double low() const {
    return drawn.mean - std::hypot(drawn.mean - drawn.low, range_deviations * steps);
  }
  double high() const {
    return drawn.mean + std::hypot(drawn.high - drawn.mean, range_deviations * steps);
  }
  /// Zero is within the range: which of both is done first cannot be told.
  bool is_tie() const { return low() <= 0.0 && high() >= 0.0; }
};
RunDifference difference(const ComparedRun& one, const ComparedRun& other);

}  // namespace orrery
