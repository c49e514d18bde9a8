#include "sim/core/statistics.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numbers>

namespace orrery {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : 0.5 * (values[middle - 1] + values[middle]);
}

double normal_share(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

double normal_quantile(double share) {
  double low = -9.0, high = 9.0;
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (low + high);
    (normal_share(middle) < share ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

double weighted_quantile(std::vector<std::pair<double, double>> values, double share) {
  std::sort(values.begin(), values.end());
  double all = 0.0, below = 0.0;
  for (const auto& [value, weight] : values) all += weight;
  constexpr double rounding = 1e-12;
  for (const auto& [value, weight] : values) {
    below += weight;
    if (below >= (share - rounding) * all) return value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

double conformal_quantile(std::vector<double> values, double coverage) {
  const auto rank =
      static_cast<std::size_t>(std::ceil(coverage * static_cast<double>(values.size() + 1)));
  if (rank > values.size()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  return values[rank - 1];
}

namespace {

using Row = std::vector<double>;

// A = L L', the lower triangle; A is symmetric and positive definite.
std::vector<Row> cholesky(std::vector<Row> a) {
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k <= i; ++k) {
      double sum = a[i][k];
      for (std::size_t j = 0; j < k; ++j) sum -= a[i][j] * a[k][j];
      assert(i != k || sum > 0.0);
      a[i][k] = i == k ? std::sqrt(sum) : sum / a[k][k];
    }
  return a;
}

// L^-1 b.
Row solved(const std::vector<Row>& l, Row b) {
  for (std::size_t i = 0; i < b.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) b[i] -= l[i][j] * b[j];
    b[i] /= l[i][i];
  }
  return b;
}

double product(const Row& a, const Row& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

ConditionalNormal conditional_normal(std::vector<std::vector<double>> covariances,
                                     const std::vector<double>& seen) {
  assert(covariances.size() == seen.size() + 1);
  Row with_it = std::move(covariances.back());
  covariances.pop_back();
  const double before = with_it.back();
  with_it.pop_back();
  for (Row& row : covariances) row.pop_back();
  const std::vector<Row> l = cholesky(std::move(covariances));
  const Row c = solved(l, std::move(with_it));
  return {product(c, solved(l, seen)), before - product(c, c)};
}

}  // namespace orrery
