#pragma once

#include <string>
#include <vector>

#include "sim/calibration/fit.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/validation/measured_steps.hpp"

namespace orrery {

/// One measured kernel, and its predictions by the formula alone and by the other rows of its
/// table.
struct AssessedRow {
  std::string shape;  ///< "4096 x 6144 x 4096"
  Seconds measured, formula, others;
  double flop = 0.0;
};

struct AssessedTable {
  std::string what;  ///< "gemm bf16", "attention 128"
  std::vector<AssessedRow> rows;
  /// Shapes of the default list of `orrery calibrate gpu` that have no row near: the formula alone
  /// predicts them. `common`: the length of the list.
  std::vector<std::string> thin;
  std::size_t common = 0;
};

/// Every table of measured kernels; empty if there are none.
std::vector<AssessedTable> assess(const Calibration& calibration);

/// The content of a calibration, the errors of each table's formula and of its other rows, rows
/// that neither predicts, and common shapes without a row near.
std::string calibration_text(const Calibration& calibration,
                             const std::vector<AssessedTable>& tables);

/// The checks of a fit, and what it left out; empty if there is neither.
std::string fit_text(const CalibrationFit& fit);

/// Achieved over predicted rates of all rows, each predicted from the others: an SVG document.
/// Errors (bad_input): no kernels were measured.
std::string calibration_chart(const Calibration& calibration,
                              const std::vector<AssessedTable>& tables);

/// Each step and its passes, measured and predicted.
std::string measured_steps_text(const std::vector<MeasuredStep>& steps);

/// The document of schema orrery.calibration/1 (docs/guides/calibrate.md), a line per measured row.
/// It reads back unchanged: constants have four digits, errors four decimals.
std::string calibration_json(const CalibrationFit& fit);

}  // namespace orrery
