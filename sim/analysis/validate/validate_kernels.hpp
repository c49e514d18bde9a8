#pragma once

#include "sim/analysis/validate/validate.hpp"

namespace orrery {

/// Whether a file is a table of inference kernels (calibration/data/serving).
bool is_kernel_table(const JsonValue& json);

/// Predicts every fourth row of it from the others ("time_s"). The row stands for all of them.
void compare_kernels(const JsonValue& json, ValidationReport& report);

}  // namespace orrery
