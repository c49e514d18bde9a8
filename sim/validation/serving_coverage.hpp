#pragma once

#include <string>
#include <vector>

#include "sim/validation/validate.hpp"

namespace orrery {

/// How many published measurements of serving lie in their ranges (serving_error.hpp), of one
/// figure and class of models.
struct ServingCoverage {
  std::string figure;    ///< "ttft", "tpot", "throughput"
  bool experts = false;  ///< Of TPOT, whose models have them; of the others always false.
  int cases = 0, inside = 0;
  /// The error that just covers nine in ten of them (split conformal: training_error_of()); NaN of
  /// fewer than nine.
  double error = 0.0;
  /// Cases that lie in a range whose error all other files give, where these have nine.
  int left_out_cases = 0, left_out_inside = 0;
};
std::vector<ServingCoverage> serving_coverage_of(const std::vector<ValidationReport>& reports);

}  // namespace orrery
