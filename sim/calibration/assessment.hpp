#pragma once

#include <string>
#include <vector>

#include "sim/measurements/calibration.hpp"

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

}  // namespace orrery
