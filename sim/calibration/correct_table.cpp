#include "sim/calibration/correct_table.hpp"

#include <array>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>

#include "sim/kernels/gemm_time.hpp"

namespace orrery {
namespace {

using ShapePoint = std::array<double, 3>;

// The metric of GemmTime: the number of tiles varies fastest, form and depth slowly.
ShapePoint coordinates(const GemmRow& row) {
  const double m = std::log2(static_cast<double>(row.m));
  const double n = std::log2(static_cast<double>(row.n));
  const double k = std::log2(static_cast<double>(row.k));
  return {1.5 * (m + n), 0.5 * (m - n), 0.5 * k};
}

double square(const ShapePoint& a, const ShapePoint& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

class Correction {
 public:
  Correction(std::vector<ShapePoint> points, std::vector<double> logs)
      : points_{std::move(points)}, logs_{std::move(logs)} {
    double best = std::numeric_limits<double>::infinity();
    for (const double width : {std::numeric_limits<double>::infinity(), 4.0, 2.0, 1.0}) {
      width_ = width;
      double sum = 0.0;
      for (std::size_t i = 0; i < points_.size(); ++i)
        sum += std::min(std::abs(without(i) - logs_[i]), 0.5);  // The loss of the table fit.
      if (sum >= best) continue;
      best = sum;
      best_width_ = width;
    }
    width_ = best_width_;
  }

  double at(const ShapePoint& x) const { return at(x, points_.size()); }
  double without(std::size_t row) const { return at(points_[row], row); }
  double mean() const { return mean(points_.size()); }

 private:
  double mean(std::size_t left_out) const {
    double sum = 0.0, count = 0.0;
    for (std::size_t i = 0; i < logs_.size(); ++i)
      if (i != left_out) sum += logs_[i], count += 1.0;
    return count > 0.0 ? sum / count : 0.0;
  }
  double at(const ShapePoint& x, std::size_t left_out) const {
    const double all = mean(left_out);
    if (std::isinf(width_)) return all;
    double sum = 0.0, weights = 1.0;
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (i == left_out) continue;
      const double weight = std::exp(-square(x, points_[i]) / (2.0 * width_ * width_));
      sum += weight * (logs_[i] - all);
      weights += weight;
    }
    return all + sum / weights;
  }

  std::vector<ShapePoint> points_;
  std::vector<double> logs_;
  double width_ = 0.0, best_width_ = std::numeric_limits<double>::infinity();
};

// The file's precision, so that the fit equals the values read back.
Seconds whole_nanoseconds(double seconds) {
  return microseconds(std::max(std::round(seconds * 1e9), 10.0) / 1e3);
}

// The formula of a GPU that takes `ratio` times as long for everything: slower rows are still those
// that the power limit held.
GemmBase slower(GemmBase base, double ratio) {
  base.overhead = ratio * base.overhead;
  base.tile_overhead = ratio * base.tile_overhead;
  base.compute_efficiency /= ratio;
  base.memory_efficiency /= ratio;
  return base;
}

}  // namespace

CorrectedTable correct_gemm_table(const Gpu& gpu, const KernelTables& tables, Dtype dtype,
                                  const std::vector<GemmRow>& rows, const MeasuredGpu& measured_on,
                                  const std::string& source) {
  const GemmTable* old = find_gemm_table(&tables, dtype);
  assert(old && !rows.empty());
  const GemmTime time{gpu, dtype, &tables};
  const auto predicted = [&](const GemmRow& row) {
    return time.without_cast(row.m, row.n, row.k).time.si();
  };
  std::vector<ShapePoint> points;
  std::vector<double> logs;
  for (const GemmRow& row : rows) {
    points.push_back(coordinates(row));
    logs.push_back(std::log(row.time.si() / predicted(row)));
  }
  const Correction correction{std::move(points), logs};

  CorrectedTable corrected;
  corrected.ratio = std::exp(correction.mean());
  GemmTable& table = corrected.table;
  table.dtype = dtype;
  table.source = source;
  table.measured_on = measured_on;
  table.base = slower(old->base, corrected.ratio);
  table.base.cast_overhead = Seconds{};
  table.base.cast_efficiency = 0.0;
  std::map<std::array<std::int64_t, 3>, Seconds> times;
  for (const GemmRow& row : old->rows)
    times[{row.m, row.n, row.k}] =
        whole_nanoseconds(predicted(row) * std::exp(correction.at(coordinates(row))));
  for (const GemmRow& row : rows) times[{row.m, row.n, row.k}] = row.time;
  for (const auto& [shape, each] : times)
    table.rows.push_back({shape[0], shape[1], shape[2], each});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    corrected.before.push_back(std::exp(-logs[i]) - 1.0);
    corrected.after.push_back(std::exp(correction.without(i) - logs[i]) - 1.0);
  }
  return corrected;
}

}  // namespace orrery
