#pragma once

#include <vector>

#include "sim/validation/validate.hpp"

namespace orrery {

/// Step times that have a range, of all reports but `left_out`, which is one of them or null.
std::vector<Comparison> steps_with_ranges(const std::vector<ValidationReport>& reports,
                                          const ValidationReport* left_out = nullptr);

/// How the steps of each software and class turned out that has nine or more of them, and those of
/// any software (docs/RANGES.md).
std::vector<PublishedClass> published_classes(const std::vector<ValidationReport>& reports,
                                              const ValidationReport* left_out = nullptr);

}  // namespace orrery
