#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <vector>

namespace orrery {

/// Values at scattered points, and between them the plane that fits the nearest ones best: locally
/// weighted linear regression (Cleveland and Devlin, JASA 83, 1988) over the 16 nearest points,
///
///     minimise sum_i w_i (r_i - r - g (x_i - x))^2 + 0.01 sum_i w_i |g|^2
///     w_i = (d_i^2 + 0.1)^-2.5
///
/// Tables of kernels are grids with holes, and what a roofline misses changes steadily with each
/// size, so that slopes are worth more than the nearest rows alone: left out rows of decode
/// attention are missed by 5.4 % where weights by distance alone miss them by some 8 %. The
/// constants were chosen on rows left out (`orrery validate calibration/data/serving/...`). The
/// answer stays within the values of the 16, widened by a quarter in logarithms, so that no slope
/// runs away.
class LocalFit {
 public:
  explicit LocalFit(std::size_t dimensions) : dimensions_{dimensions} {}

  void add(std::span<const double> point, double value);

  struct Answer {
    double value = 0.0;
    bool exact = false;    ///< `x` is a point.
    double outside = 0.0;  ///< How far `x` lies outside the box of all points; at its border then.
  };
  /// Of a fit with points.
  Answer at(std::span<const double> x) const;
  /// As Answer::outside.
  double outside(std::span<const double> x) const;

  std::size_t size() const { return values_.size(); }

 private:
  std::size_t dimensions_;
  std::vector<double> points_, values_, least_, most_;
};

}  // namespace orrery
