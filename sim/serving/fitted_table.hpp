#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/cluster/system.hpp"
#include "sim/measurements/serving_table.hpp"
#include "sim/serving/kernel_roof.hpp"

namespace orrery {

/// Interpolates values at scattered points by locally weighted linear regression (Cleveland and
/// Devlin, JASA 83, 1988) over the 16 nearest points,
///
///     minimise sum_i w_i (r_i - r - g (x_i - x))^2 + 0.01 sum_i w_i |g|^2
///     w_i = (d_i^2 + 0.1)^-2.5
///
/// Tables of kernels are grids with holes, and what a roofline misses changes steadily with each
/// size, so that slopes are worth more than the nearest rows alone: left-out rows of decode
/// attention are missed by 5.4 %, and by some 8 % with weights by distance alone. The constants
/// were chosen on left-out rows (`orrery validate calibration/data/serving/...`). The answer stays
/// within the values of the 16, widened by a quarter in logarithms, which bounds the slopes.
class LocalFit {
 public:
  explicit LocalFit(std::size_t dimensions) : dimensions_{dimensions} {}

  void add(std::span<const double> point, double value);

  struct Answer {
    double value = 0.0;
    bool exact = false;    ///< `x` is a point.
    double outside = 0.0;  ///< Distance from the box of all points, to which `x` is clamped.
  };
  /// Requires at least one point.
  Answer at(std::span<const double> x) const;
  /// Distance of `x` from the box of all points.
  double outside(std::span<const double> x) const;

  std::size_t size() const { return values_.size(); }

 private:
  std::size_t dimensions_;
  std::vector<double> points_, values_, least_, most_;
};

/// Peaks of the machine whose rooflines divide a table's times.
struct RoofRates {
  FlopPerSecond peak;        ///< Peak of the kernel's units.
  BytesPerSecond bandwidth;  ///< Rate of the memory, or of one GPU's links in an all-reduce.
};

/// Rates of a GPU for kernels of `op`. Errors (infeasible): it has no units for the format.
RoofRates roof_rates(const Gpu& gpu, const std::string& op, const KernelFormats& formats);

/// A table of kernel times, interpolated between its rows:
///
///     t(sizes) = roof(sizes) exp(fit of ln(t_i / roof_i) in log2 of the sizes)
///
/// A window is a category (four octaves from none); a head dimension counts twice. Experts are
/// compared by how many ranks share them, and then by how: a layout that a table lacks is near the
/// one with as many weights a rank.
class FittedTable {
 public:
  /// `measured_on`: rates of the table's GPU. The table is not needed afterwards.
  FittedTable(const ServingTable& table, const KernelFormats& formats,
              const RoofRates& measured_on);

  struct Time {
    Seconds time;
    bool exact = false;    ///< The sizes are a row of the table.
    double outside = 0.0;  ///< Octaves outside all rows.
  };
  /// Time at these rates, which differ from measured_on if the table is a proxy for another GPU.
  Time at(std::span<const std::int64_t> sizes, const RoofRates& rates) const {
    return at(sizes, rates, formats_);
  }
  /// The same of other formats, at the efficiency of the table's own.
  Time at(std::span<const std::int64_t> sizes, const RoofRates& rates,
          const KernelFormats& formats) const;
  double outside(std::span<const std::int64_t> sizes) const;

  /// Of a module of attention: the most earlier tokens behind which at least so many prompts, or
  /// single tokens, were timed at once. Of more than all rows have: what the most have.
  std::int64_t reach(std::int64_t requests) const;

  const std::string& title() const { return title_; }
  const std::string& gpu() const { return gpu_; }
  const std::string& engine() const { return engine_; }

 private:
  std::string op_, title_, gpu_, engine_;
  KernelFormats formats_;
  LocalFit fit_;
  std::map<std::int64_t, std::int64_t> reach_;  // The most earlier tokens by requests.
};

/// A left-out row and its prediction from the others.
struct LeftOutRow {
  std::size_t row = 0;  ///< Its number in the table.
  Seconds measured, predicted;
};

/// Leaves out every fourth row, picked by a hash of its sizes, and predicts all of them from the
/// others. Empty if there are no others.
std::vector<LeftOutRow> left_out_rows(const ServingTable& table, const Gpu& gpu);
/// Errors of the left-out rows: predicted / measured - 1.
std::vector<double> left_out_errors(const ServingTable& table, const Gpu& gpu);

}  // namespace orrery
