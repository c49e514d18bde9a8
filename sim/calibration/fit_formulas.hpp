#pragma once

#include <functional>
#include <span>
#include <vector>

#include "sim/measurements/kernel_tables.hpp"

namespace orrery {

/// The least value of `loss` that a simplex finds from `start`, each of whose other corners lies
/// `step` along one axis, in `moves` moves (Nelder and Mead, The Computer Journal 7, 1965, with
/// their coefficients 1, 2, 1/2, 1/2). No derivative is needed. The same input gives the same bits.
struct Minimum {
  double loss = 0.0;
  std::vector<double> at;
};
Minimum nelder_mead(const std::function<double(const std::vector<double>&)>& loss,
                    const std::vector<double>& start, double step, int moves);

/// Minimises from each of `starts`, then once more around the best, against local minima and
/// simplices that collapsed early.
std::vector<double> minimize(const std::function<double(const std::vector<double>&)>& loss,
                             const std::vector<std::vector<double>>& starts);

/// The constants with which the formulas of docs/explanation/kernels.md come closest to measured
/// rows: the least mean of min(|ln(predicted / measured)|, 0.5) plus a weak prior. The absolute
/// value and its cap make single odd rows harmless; the prior holds what the rows cannot determine.
/// calibration/kernel_fit.py does the same for the tables that come with the project.
///
/// Values are rounded to four digits, so that a file's text is the fit. `rows` are not empty, all
/// positive; `measured` has the peak of `dtype`.
GemmBase fit_gemm(std::span<const GemmRow> rows, const MeasuredGpu& measured, Dtype dtype);

/// Rows of one head dimension, of the kernel alone (AttentionTable::Measures::kernel).
AttentionBase fit_attention(std::span<const AttentionRow> rows, const MeasuredGpu& measured);

}  // namespace orrery
