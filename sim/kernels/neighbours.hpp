#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace orrery {

/// Measurements support no answer beyond this factor outside the measured sizes.
constexpr std::int64_t table_reach = 4;

/// Datasheets round; any two of them differ by less than 2 %.
inline bool is_same_figure(double a, double b) { return std::abs(a - b) <= 0.02 * b; }

/// Interpolation of a formula's residuals at scattered points, weighted by inverse squared distance
/// over the 8 nearest (Shepard, ACM National Conference 1968).
///
///     r = sum(w_i * r_i) / (sum(w_i) + 0.5)      w_i = 1 / (d_i^2 + 0.05)
///
/// 0.05 keeps a point that is nearly hit from drowning its neighbours, as single measurements
/// scatter; 0.5 lets r fade to 0 far from all points, where only the formula applies. Both were
/// chosen with the coordinates by leaving rows out (docs/explanation/kernels.md).
template <std::size_t dimensions>
class Neighbours {
 public:
  using Point = std::array<double, dimensions>;
  static constexpr std::size_t no_point = std::numeric_limits<std::size_t>::max();

  void add(const Point& point, double value) {
    points_.push_back(point);
    values_.push_back(value);
  }

  /// The value at `x` from all points but number `left_out`; 0 without any.
  double at(const Point& x, std::size_t left_out = no_point) const {
    constexpr std::size_t most = 8;
    struct Near {
      double square = std::numeric_limits<double>::infinity();
      std::size_t index = 0;
    };
    std::array<Near, most> near;  // Sorted by distance.
    for (std::size_t i = 0; i < points_.size(); ++i) {
      double square = 0.0;
      for (std::size_t j = 0; j < dimensions; ++j)
        square += (x[j] - points_[i][j]) * (x[j] - points_[i][j]);
      if (square >= near.back().square || i == left_out) continue;
      std::size_t slot = most - 1;
      for (; slot > 0 && near[slot - 1].square > square; --slot) near[slot] = near[slot - 1];
      near[slot] = {square, i};
    }
    double sum = 0.0;
    double weights = 0.0;
    for (const auto& [square, index] : near) {
      if (square == std::numeric_limits<double>::infinity()) break;
      const double weight = 1.0 / (square + 0.05);
      sum += weight * values_[index];
      weights += weight;
    }
    return sum / (weights + 0.5);
  }

  /// Distance of the nearest point; infinite without any.
  double distance(const Point& x) const {
    double least = std::numeric_limits<double>::infinity();
    for (const Point& point : points_) {
      double square = 0.0;
      for (std::size_t j = 0; j < dimensions; ++j) square += (x[j] - point[j]) * (x[j] - point[j]);
      least = std::min(least, square);
    }
    return std::sqrt(least);
  }

  struct Neighbour {
    std::size_t index = 0;
    double distance = 0.0;
  };
  /// The nearest `most` points by rising distance; of points equally far the one added first.
  std::vector<Neighbour> nearest(const Point& x, std::size_t most) const {
    std::vector<Neighbour> all;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      double square = 0.0;
      for (std::size_t j = 0; j < dimensions; ++j)
        square += (x[j] - points_[i][j]) * (x[j] - points_[i][j]);
      all.push_back({i, std::sqrt(square)});
    }
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(most, all.size()));
    std::partial_sort(all.begin(), end, all.end(), [](const Neighbour& a, const Neighbour& b) {
      return a.distance != b.distance ? a.distance < b.distance : a.index < b.index;
    });
    all.erase(end, all.end());
    return all;
  }

  double value(std::size_t index) const { return values_[index]; }
  std::size_t size() const { return points_.size(); }

 private:
  std::vector<Point> points_;
  std::vector<double> values_;
};

}  // namespace orrery
