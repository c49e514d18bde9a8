#pragma once

#include "sim/validation/validate.hpp"

namespace orrery {

/// Predicts every timed kernel of a file of kernel_case.hpp ("time_s"), as if its own row had not
/// been measured where the tables hold it; all other rows may speak. Tables of ours are predicted
/// from themselves, other files from the tables of the catalog.
void compare_kernels(const JsonValue& json, ValidationReport& report);

/// Whether a file is a table of inference kernels (calibration/data/serving).
bool is_serving_table(const JsonValue& json);
/// Predicts every fourth row of it from the others ("time_s").
void compare_serving_rows(const JsonValue& json, ValidationReport& report);

}  // namespace orrery
