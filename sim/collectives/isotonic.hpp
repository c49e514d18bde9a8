#pragma once

#include <vector>

namespace orrery {

/// The sequence that never falls and differs least from `values`, as a sum of absolute
/// differences: where values fall, they and as few neighbours as it takes become their median, of
/// an even number the lower one. A single outlier thus moves nothing else, as a mean or a running
/// maximum would let it. Source: pool adjacent violators, of Barlow, Bartholomew, Bremner and
/// Brunk, "Statistical Inference under Order Restrictions", 1972; medians: Robertson and Wright,
/// "Multiple isotonic median regression", Annals of Statistics 1, 1973.
std::vector<double> never_falling(const std::vector<double>& values);

}  // namespace orrery
