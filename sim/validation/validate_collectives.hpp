#pragma once

#include "sim/validation/validate.hpp"

namespace orrery {

/// Predicts every point of every sweep in `json`. A case has up to two rows: the time of its
/// messages below 1 MiB, and the bus bandwidth of those of 64 MiB and more; measured and predicted
/// are means over the points, the error the mean absolute error of a point.
void compare_collectives(const JsonValue& json, const ValidationOptions& options,
                         ValidationReport& report);

}  // namespace orrery
