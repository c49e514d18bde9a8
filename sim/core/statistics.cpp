#include "sim/core/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace orrery {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

double conformal_quantile(std::vector<double> values, double coverage) {
  const auto rank =
      static_cast<std::size_t>(std::ceil(coverage * static_cast<double>(values.size() + 1)));
  if (rank > values.size()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  return values[rank - 1];
}

}  // namespace orrery
