#pragma once

#include <vector>

namespace orrery {

/// A normal variable after others that vary with it were seen.
struct ConditionalNormal {
  double mean = 0.0, variance = 0.0;
};

/// All have mean 0. `covariances`: of all pairs, the variable itself last; a positive definite
/// matrix. `seen`: the values of the others. With C among the others and c with the variable,
///
///     mean = c' C^-1 seen,     variance = v - c' C^-1 c
ConditionalNormal conditional_normal(std::vector<std::vector<double>> covariances,
                                     const std::vector<double>& seen);

}  // namespace orrery
