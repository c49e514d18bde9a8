#pragma once

#include <string>
#include <vector>

#include "sim/cluster/system.hpp"
#include "sim/measurements/kernel_tables.hpp"

namespace orrery {

/// A table of products, corrected by a few rows measured on such a GPU.
struct CorrectedTable {
  GemmTable table;  ///< All of the old one's shapes, and `rows` as they were measured.
  double ratio;     ///< Measured over the old table's prediction: the geometric mean.
  /// Errors without the correction and with it, each row left out of its own: predicted / measured
  /// - 1.
  std::vector<double> before, after;
};

/// `tables` must hold a table for `dtype`, possibly of a GPU that is a proxy for `gpu`; `rows` are
/// not empty and hold no quantising, and so does the result.
///
/// A record of some ten minutes has a twentieth of a published table's shapes, and clusters: by
/// itself it predicts the rest of the GPU worse than the published table does. But the published
/// one was measured on another machine, with another library and clock. The record gives the
/// correction, smoothly: with r_i = ln(measured / predicted) at shapes x_i and d the distance of
/// docs/explanation/kernels.md,
///
///     c(x) = g + sum(w_i (r_i - g)) / (sum(w_i) + 1)     w_i = exp(-d(x, x_i)^2 / 2 h^2)
///
/// g being the mean of r. The 1 makes one isolated row count half at its shape and nothing far
/// away. h is the one of 1, 2, 4 and infinity under which left-out rows are predicted best.
CorrectedTable correct_gemm_table(const Gpu& gpu, const KernelTables& tables, Dtype dtype,
                                  const std::vector<GemmRow>& rows, const MeasuredGpu& measured_on,
                                  const std::string& source);

/// The `measured_on` of a corrected table: not a GPU's name, so that its rows do not pass for
/// measured ones.
inline std::string corrected_name(const std::string& gpu) { return gpu + ", corrected"; }

}  // namespace orrery
