#pragma once

#include <string>
#include <vector>

#include "sim/validation/validate.hpp"

namespace orrery {

/// The reports as "orrery.validation/1": per file its cases, refusals and error figures, errors as
/// fractions. Figures of a file in which no case was compared are null. `training_errors`: with
/// which nine in ten of all these steps would lie in their ranges; null for too few.
std::string validation_json(const std::vector<ValidationReport>& reports);

}  // namespace orrery
