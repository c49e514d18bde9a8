#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/input/json_value.hpp"

namespace orrery {

/// A measured quantity beside what Orrery says. `error` is predicted / measured - 1.
struct Comparison {
  std::string id;
  std::string quantity;  ///< "step_time_s", "peak_memory_bytes"
  double measured = 0.0;
  double predicted = 0.0;
  std::map<std::string, double> peer_errors;

  double error() const { return predicted / measured - 1.0; }
};

struct Refusal {
  std::string id;
  std::string reason;
};

/// What became of all cases of one file. The figures are over the file's main quantity
/// (step_time_s); NaN where no case was compared.
struct ValidationReport {
  std::string file;
  std::string kind;  ///< "training"
  std::vector<Comparison> comparisons;
  std::vector<Refusal> refusals;
  double mean_abs_error = 0.0;
  double mean_error = 0.0;
  double median_abs_error = 0.0;
  double max_abs_error = 0.0;
};

/// Predicts every case of a file. A case that cannot be predicted is refused with its reason, never
/// dropped. Errors: the file is of no known kind.
ValidationReport validate_file(const std::string& path);

}  // namespace orrery
