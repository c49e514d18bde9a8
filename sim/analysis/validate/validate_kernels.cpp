#include "sim/analysis/validate/validate_kernels.hpp"

#include <algorithm>
#include <cmath>

#include "sim/base/core/statistics.hpp"
#include "sim/cost/serving/left_out_rows.hpp"

namespace orrery {

bool is_kernel_table(const JsonValue& json) {
  return json.is_object() && json.has("schema") && json.at("schema").is_string() &&
         json.at("schema").text() == "orrery.serving_kernels/1";
}

void compare_kernels(const JsonValue& json, ValidationReport& report) {
  const ServingTable table = parse_serving_table(json);
  const std::string id = table.title() + " on " + table.gpu;
  std::vector<double> errors = left_out_errors(table, read_gpu(table.gpu, json.place() / "gpu"));
  if (errors.empty()) {
    report.refusals.push_back({id, "it has too few rows to leave any out"});
    return;
  }
  Seconds all;
  for (const Seconds time : table.times) all += time;
  const double mean = all.si() / static_cast<double>(table.rows());
  Comparison::Points points{static_cast<int>(errors.size()), 0.0, 0.0};
  for (double& error : errors) {
    points.mean_error += error / points.count;
    error = std::abs(error);
    points.mean_abs_error += error / points.count;
  }
  Comparison comparison{id, "time_s", mean, mean * (1.0 + points.mean_error), {}};
  comparison.over_points = points;
  report.comparisons.push_back(std::move(comparison));
  report.mean_abs_error = points.mean_abs_error;
  report.mean_error = points.mean_error;
  report.median_abs_error = median(errors);
  report.max_abs_error = *std::max_element(errors.begin(), errors.end());
}

}  // namespace orrery
