#pragma once

#include <vector>

namespace orrery {

/// Of at least one value; that between the middle two of an even number.
double median(std::vector<double> values);

/// What a further value of the same kind does not exceed with probability `coverage`, whatever
/// their distribution: that of rank ceil(coverage (n + 1)) among n. NaN where that is beyond the
/// last. (Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World", 2005: split
/// conformal prediction.)
double conformal_quantile(std::vector<double> values, double coverage);

}  // namespace orrery
