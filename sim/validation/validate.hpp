#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/training/step_range.hpp"

namespace orrery {

/// A measured quantity beside what Orrery says. `error` is predicted / measured - 1; of a row
/// that stands for many points, their mean absolute error.
struct Comparison {
  std::string id;
  /// "step_time_s", "peak_memory_bytes"; of collectives "time_s", "bus_bandwidth_bytes_per_s"; of
  /// dispatch and combine "time_s"; of serving and whole runs as the case says it,
  /// "decode_step_ms", "ettr".
  std::string quantity;
  double measured = 0.0;
  double predicted = 0.0;
  std::map<std::string, double> peer_errors;

  /// Of a row that stands for the points of a sweep: `measured` and `predicted` are means.
  struct Points {
    int count = 0;
    double mean_abs_error = 0.0;
    double mean_error = 0.0;
  };
  std::optional<Points> over_points = std::nullopt;
  std::optional<StepRange> range = std::nullopt;  ///< Of a step time: of the prediction.
  /// Where bounds were published, low and high: `measured` is the nearest value between them.
  std::optional<std::pair<double, double>> bounds = std::nullopt;
  /// Of what clients of a served model see: predicted x exp(-+ error) is the range.
  struct Serving {
    bool experts = false;
    double error = 0.0;
  };
  std::optional<Serving> serving = std::nullopt;

  double error() const {
    return over_points ? over_points->mean_abs_error : predicted / measured - 1.0;
  }
  double signed_error() const { return over_points ? over_points->mean_error : error(); }
};

struct ValidationReport;

/// Rows of a table of kernels, which are too many to be read one by one: what their errors are
/// together.
struct RowErrors {
  std::string of;               ///< "h100-sxm gemm bf16"
  std::string part = {};        ///< Of these, those that it says: "m n k >= 2^33"; "": all.
  std::string kind = {};        ///< "gemm", "attention", "experts", ...: alike in other files.
  std::vector<double> signed_;  ///< predicted / measured - 1, at least one.

  int rows() const { return static_cast<int>(signed_.size()); }
  double mean_abs() const;
  double median_abs() const;
  double p90_abs() const;  ///< The value at place 0.9 rows, rounded down, by rising size.
  double bias() const;     ///< Median with its sign: below 0 predictions are too fast.
};
/// All rows of several files that are of one kind and part, in the order of their first ones.
std::vector<RowErrors> rows_of_all(const std::vector<ValidationReport>& reports);

struct Refusal {
  std::string id;
  std::string reason;
};

/// What became of all cases of one file. The figures are over the file's main quantity:
/// step_time_s; of collectives bus_bandwidth_bytes_per_s (time_s where no sweep is long enough for
/// one); of kernels, dispatch and combine time_s; of whole runs ettr; of serving tpot_ms or the
/// next that was measured. NaN where no case was compared.
struct ValidationReport {
  std::string file;
  std::string kind;  ///< "training", "collectives", "expert exchange", "serving", "runs", "kernels"
  std::string main_quantity;  ///< What the figures are over.
  std::vector<Comparison> comparisons;
  std::vector<Refusal> refusals;
  std::vector<RowErrors> rows;  ///< Of kernels: in place of a line for each comparison.
  double mean_abs_error = std::numeric_limits<double>::quiet_NaN();
  double mean_error = std::numeric_limits<double>::quiet_NaN();
  double median_abs_error = std::numeric_limits<double>::quiet_NaN();
  double p90_abs_error = std::numeric_limits<double>::quiet_NaN();
  double max_abs_error = std::numeric_limits<double>::quiet_NaN();
};

struct ValidationOptions {
  /// Predicts each collective without any sweep of the same GPU, collective, ranks and nodes; each
  /// dispatch and combine with constants fitted without any table of its GPU, kernel and shape.
  bool leave_one_out = false;
};

/// Predicts every case of a file. A case that cannot be predicted is refused with its reason, never
/// dropped. Errors: the file is of no known kind.
ValidationReport validate_file(const std::string& path, const ValidationOptions& options = {});

/// Mean absolute error over the rows of one quantity; NaN where there are none.
double mean_abs_error_of(const ValidationReport& report, const std::string& quantity);
/// The median, likewise.
double median_abs_error_of(const ValidationReport& report, const std::string& quantity);

}  // namespace orrery
