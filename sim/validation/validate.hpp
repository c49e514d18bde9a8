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

/// A measured quantity and its prediction. `error` is predicted / measured - 1; for a row that
/// summarises many points, their mean absolute error.
struct Comparison {
  std::string id;
  /// "step_time_s", "peak_memory_bytes"; for collectives "time_s" below 1 MiB, "time_from_1_mib_s"
  /// and, from 64 MiB on, "bus_bandwidth_bytes_per_s"; for dispatch and combine "time_s"; for
  /// serving and whole runs the case's own, such as "decode_step_ms", "ettr".
  std::string quantity;
  double measured = 0.0;
  double predicted = 0.0;
  std::map<std::string, double> peer_errors;

  /// The points of a sweep that a row summarises: `measured` and `predicted` are means.
  struct Points {
    int count = 0;
    double mean_abs_error = 0.0;
    double mean_error = 0.0;
  };
  std::optional<Points> over_points = std::nullopt;
  std::optional<StepRange> range = std::nullopt;  ///< Predicted range of a step time.
  std::string publication = {};  ///< Title of the source of a step time or a figure of serving.
  std::string plan = {};         ///< plan_of_a_replica() of a step time.
  /// Published bounds, low and high: `measured` is the nearest value between them.
  std::optional<std::pair<double, double>> bounds = std::nullopt;
  /// Latency or throughput of serving: predicted x exp(-+ it) is the range.
  std::optional<double> serving_error = std::nullopt;

  double error() const {
    return over_points ? over_points->mean_abs_error : predicted / measured - 1.0;
  }
  double signed_error() const { return over_points ? over_points->mean_error : error(); }
};

struct ValidationReport;

/// Errors of the rows of a table of kernels, too many for a line each.
struct RowErrors {
  std::string of;               ///< "h100-sxm gemm bf16"
  std::string part = {};        ///< Subset of the rows: "m n k >= 2^33"; "": all.
  std::string kind = {};        ///< "gemm", "attention", "experts", ...: the same in all files.
  std::vector<double> signed_;  ///< predicted / measured - 1, at least one.

  int rows() const { return static_cast<int>(signed_.size()); }
  double mean_abs() const;
  double median_abs() const;
  double p90_abs() const;  ///< The value at index floor(0.9 rows), by rising size.
  double bias() const;     ///< Median with its sign: below 0 predictions are too fast.
};
/// All rows of several files that have one kind and part, in order of first appearance.
std::vector<RowErrors> rows_of_all(const std::vector<ValidationReport>& reports);

struct Refusal {
  std::string id;
  std::string reason;
};

/// The validation of all cases of one file. The error figures are over the file's main quantity:
/// step_time_s; bus_bandwidth_bytes_per_s of collectives (time_s if no sweep is long enough for
/// one); time_s of kernels, dispatch and combine; ettr of whole runs; tpot_ms of serving, or the
/// next that was measured. NaN if no case was compared.
struct ValidationReport {
  std::string file;
  std::string
      kind;  ///< "training", "collectives", "expert exchange", "serving", "runs", "kernels",
             ///< "post-training"
  std::string main_quantity;  ///< Quantity of the figures.
  std::vector<Comparison> comparisons;
  std::vector<Refusal> refusals;
  std::vector<RowErrors> rows;  ///< Kernels: in place of a line per comparison.
  /// Points of collectives' sweeps, and those that lie in the predicted range.
  int points = 0, points_in_range = 0;
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
