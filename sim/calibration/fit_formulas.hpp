#pragma once

#include <span>

#include "sim/measurements/kernel_tables.hpp"

namespace orrery {

/// The constants with which the formulas of docs/KERNELS.md come closest to measured rows: the
/// least mean of min(|ln(predicted / measured)|, 0.5) plus a weak prior. The size and its cap make
/// single odd rows harmless; the prior holds what the rows cannot tell. calibration/kernel_fit.py
/// does the same for the tables that come with the project.
///
/// Values are rounded to four digits, so that a file's text is the fit. `rows` are not empty, all
/// positive; `measured` has the peak of `dtype`.
GemmBase fit_gemm(std::span<const GemmRow> rows, const MeasuredGpu& measured, Dtype dtype);

/// Rows of one head dimension, of the kernel alone (AttentionTable::Measures::kernel).
AttentionBase fit_attention(std::span<const AttentionRow> rows, const MeasuredGpu& measured);

}  // namespace orrery
