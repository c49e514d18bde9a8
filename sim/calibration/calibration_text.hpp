#pragma once

#include <string>
#include <vector>

#include "sim/calibration/fit.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/validation/measured_steps.hpp"

namespace orrery {

/// One measured kernel, what the formula alone says of it, and what the other rows of its table
/// say.
struct AssessedRow {
  std::string shape;  ///< "4096 x 6144 x 4096"
  Seconds measured, formula, others;
  double flop = 0.0;
};

struct AssessedTable {
  std::string what;  ///< "gemm bf16", "attention 128"
  std::vector<AssessedRow> rows;
  /// Of the shapes that `orrery calibrate gpu` measures without being told any, those which no row
  /// is near: the formula alone prices them. And how many there are.
  std::vector<std::string> thin;
  std::size_t common = 0;
};

/// Every table of kernels that were measured; empty where there are none.
std::vector<AssessedTable> assess(const Calibration& calibration);

/// What a calibration holds, how well each table is predicted by its formula and by its other rows,
/// which rows nobody predicts, and which common shapes no row is near.
std::string calibration_text(const Calibration& calibration,
                             const std::vector<AssessedTable>& tables);

/// What a fit was held against, and what it left out; empty where there is neither.
std::string fit_text(const CalibrationFit& fit);

/// Achieved over predicted rates of all rows, each predicted from the others: an SVG document.
/// Errors (bad_input): no kernels were measured.
std::string calibration_chart(const Calibration& calibration,
                              const std::vector<AssessedTable>& tables);

/// Each step and its passes, measured and predicted.
std::string measured_steps_text(const std::vector<MeasuredStep>& steps);

/// The document of schema orrery.calibration/1 (docs/guides/calibrate.md), a measured row a line.
/// It reads back as what it was made from: constants have four digits, errors four decimals.
std::string calibration_json(const CalibrationFit& fit);

}  // namespace orrery
