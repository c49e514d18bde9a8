#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "sim/measurements/serving_table.hpp"
#include "sim/serving/kernel_roof.hpp"
#include "sim/serving/local_fit.hpp"

namespace orrery {

/// The machine whose rooflines divide a table's times.
struct RoofRates {
  FlopPerSecond peak;        ///< Of the kernel's units.
  BytesPerSecond bandwidth;  ///< Of the memory; of an all-reduce one GPU's to the others.
};

/// Those of a GPU for kernels of `op`. Errors (infeasible): it has no units for the format.
RoofRates roof_rates(const Gpu& gpu, const std::string& op, const KernelFormats& formats);

/// A table and how it goes on between its rows:
///
///     t(sizes) = roof(sizes) exp(fit of ln(t_i / roof_i) in log2 of the sizes)
///
/// A window is no size but a kind (four octaves from none); a head dimension counts twice. Experts
/// are compared by how many ranks share them, and then by how: a layout that a table lacks is near
/// the one with as many weights a rank.
class FittedTable {
 public:
  /// `measured_on`: rates of the GPU of the table. The table is not needed afterwards.
  FittedTable(const ServingTable& table, const KernelFormats& formats,
              const RoofRates& measured_on);

  struct Time {
    Seconds time;
    bool exact = false;    ///< This very row.
    double outside = 0.0;  ///< Octaves outside all rows.
  };
  /// On a machine of these rates, which differ from measured_on where the table stands in.
  Time at(std::span<const std::int64_t> sizes, const RoofRates& rates) const;
  double outside(std::span<const std::int64_t> sizes) const;

  const std::string& title() const { return title_; }
  const std::string& gpu() const { return gpu_; }
  const std::string& engine() const { return engine_; }

 private:
  std::string op_, title_, gpu_, engine_;
  KernelFormats formats_;
  LocalFit fit_;
};

}  // namespace orrery
