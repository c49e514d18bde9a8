#pragma once

#include <utility>
#include <vector>

namespace orrery {

/// The median of one or more values; the mean of the middle two if their number is even.
double median(std::vector<double> values);

/// The probability that a normal variable of mean 0 and variance 1 is at most `x`, and the value
/// that it does not exceed with probability `share` (0 < share < 1; within -9 .. 9).
double normal_share(double x);
double normal_quantile(double share);

/// The least of the values that, with all below it, has `share` of the weights, which are positive.
/// NaN if there is none.
double weighted_quantile(std::vector<std::pair<double, double>> values_and_weights, double share);

/// A bound that a further value of the same kind does not exceed with probability `coverage`,
/// whatever their distribution: the value of rank ceil(coverage (n + 1)) among n. NaN if there is
/// none. (Vovk, Gammerman and Shafer, "Algorithmic Learning in a Random World", 2005: split
/// conformal prediction.)
double conformal_quantile(std::vector<double> values, double coverage);

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
