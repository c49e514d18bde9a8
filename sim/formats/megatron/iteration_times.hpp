#pragma once

#include <optional>
#include <string>

#include "sim/core/units.hpp"

namespace orrery {

/// How long the iterations of a training log took.
struct MeasuredSteps {
  Seconds median;
  int counted = 0;  ///< Lines, without those that were left out.
};

/// From lines such as "iteration 20/ 500 | ... | elapsed time per iteration (ms): 12110.4 | ...",
/// behind whatever a launcher prefixes. The first line is left out where there are others: it warms
/// up. Nothing: there is no such line.
std::optional<MeasuredSteps> measured_steps(const std::string& log);

}  // namespace orrery
