#include "sim/serving/local_fit.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace orrery {
namespace {

constexpr std::size_t nearest_points = 16;
constexpr std::size_t most_dimensions = 7;
constexpr double softening = 0.1;
constexpr double ridge = 0.01;
constexpr double widening = 0.25;
constexpr double same = 1e-18;

struct Near {
  double square = std::numeric_limits<double>::infinity();
  std::size_t index = 0;
};

// Solves the symmetric system in place by elimination with pivots; `n` unknowns.
using Row = std::array<double, most_dimensions + 2>;
double first_unknown(std::array<Row, most_dimensions + 1>& system, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t pivot = i;
    for (std::size_t r = i + 1; r < n; ++r)
      if (std::abs(system[r][i]) > std::abs(system[pivot][i])) pivot = r;
    std::swap(system[i], system[pivot]);
    for (std::size_t r = 0; r < n; ++r) {
      if (r == i) continue;
      const double factor = system[r][i] / system[i][i];
      for (std::size_t c = i; c <= n; ++c) system[r][c] -= factor * system[i][c];
    }
  }
  return system[0][n] / system[0][0];
}

}  // namespace

void LocalFit::add(std::span<const double> point, double value) {
  assert(point.size() == dimensions_ && dimensions_ <= most_dimensions);
  if (values_.empty()) {
    least_.assign(point.begin(), point.end());
    most_ = least_;
  }
  for (std::size_t j = 0; j < dimensions_; ++j) {
    least_[j] = std::min(least_[j], point[j]);
    most_[j] = std::max(most_[j], point[j]);
  }
  points_.insert(points_.end(), point.begin(), point.end());
  values_.push_back(value);
}

double LocalFit::outside(std::span<const double> x) const {
  double square = 0.0;
  for (std::size_t j = 0; j < dimensions_; ++j) {
    const double beyond = x[j] - std::clamp(x[j], least_[j], most_[j]);
    square += beyond * beyond;
  }
  return std::sqrt(square);
}

LocalFit::Answer LocalFit::at(std::span<const double> asked) const {
  assert(asked.size() == dimensions_ && !values_.empty());
  std::array<double, most_dimensions> x{};
  for (std::size_t j = 0; j < dimensions_; ++j) x[j] = std::clamp(asked[j], least_[j], most_[j]);

  std::array<Near, nearest_points> near;  // By rising distance.
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const double* point = &points_[i * dimensions_];
    double square = 0.0;
    for (std::size_t j = 0; j < dimensions_; ++j) square += (x[j] - point[j]) * (x[j] - point[j]);
    if (square >= near.back().square) continue;
    std::size_t slot = nearest_points - 1;
    for (; slot > 0 && near[slot - 1].square > square; --slot) near[slot] = near[slot - 1];
    near[slot] = {square, i};
  }
  const double beyond = outside(asked);
  if (near[0].square < same) return {values_[near[0].index], beyond == 0.0, beyond};

  const std::size_t n = dimensions_ + 1;
  std::array<Row, most_dimensions + 1> system{};
  double weights = 0.0;
  double lowest = std::numeric_limits<double>::infinity(), highest = -lowest;
  for (const auto& [square, index] : near) {
    if (square == std::numeric_limits<double>::infinity()) break;
    const double softened = square + softening;
    const double weight = 1.0 / (softened * softened * std::sqrt(softened));
    const double value = values_[index];
    std::array<double, most_dimensions + 1> row{1.0};
    for (std::size_t j = 0; j < dimensions_; ++j)
      row[j + 1] = points_[index * dimensions_ + j] - x[j];
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) system[i][j] += weight * row[i] * row[j];
      system[i][n] += weight * row[i] * value;
    }
    weights += weight;
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
  for (std::size_t i = 1; i < n; ++i) system[i][i] += ridge * weights;
  const double value = std::clamp(first_unknown(system, n), lowest - widening, highest + widening);
  return {value, false, beyond};
}

}  // namespace orrery
