#pragma once

#include <string>
#include <vector>

#include "sim/validation/measured_steps.hpp"

namespace orrery {

/// Each step and its passes, measured and predicted.
std::string measured_steps_text(const std::vector<MeasuredStep>& steps);

}  // namespace orrery
