#pragma once

#include "sim/validation/validate.hpp"

namespace orrery {

/// Predicts every row of every dispatch and combine table in `json`. A table has two rows of the
/// report: measured and predicted are means over its rows, the error the mean absolute error.
void compare_exchanges(const JsonValue& json, const ValidationOptions& options,
                       ValidationReport& report);

}  // namespace orrery
