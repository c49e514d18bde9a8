#include "sim/validate/validate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/estimate/estimate.hpp"
#include "sim/validate/training_case.hpp"

namespace orrery {
namespace {

void predict(const TrainingCase& training_case, ValidationReport& report) {
  try {
    const Scenario scenario = scenario_of(training_case);
    if (training_case.peak_memory) {
      Comparison memory{training_case.id,
                        "peak_memory_bytes",
                        training_case.peak_memory->si(),
                        memory_of(scenario).peak().si(),
                        {}};
      report.comparisons.push_back(memory);
    }
    if (!training_case.step_time) return;
    Comparison time{training_case.id,
                    "step_time_s",
                    training_case.step_time->si(),
                    estimate(scenario).result.step_time.si(),
                    {}};
    for (const auto& [peer, predicted] : training_case.peers)
      time.peer_errors[peer] = predicted / *training_case.step_time - 1.0;
    report.comparisons.push_back(std::move(time));
  } catch (const Error& error) {
    report.refusals.push_back({training_case.id, error.what()});
  }
}

void sum_up(ValidationReport& report) {
  std::vector<double> errors;
  for (const Comparison& comparison : report.comparisons)
    if (comparison.quantity == "step_time_s") errors.push_back(comparison.error());
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  report.mean_abs_error = report.mean_error = nothing;
  report.median_abs_error = report.max_abs_error = nothing;
  if (errors.empty()) return;
  const auto count = static_cast<double>(errors.size());
  report.mean_error = report.mean_abs_error = 0.0;
  for (double& error : errors) {
    report.mean_error += error / count;
    error = std::abs(error);
    report.mean_abs_error += error / count;
  }
  std::sort(errors.begin(), errors.end());
  const std::size_t middle = errors.size() / 2;
  report.median_abs_error =
      errors.size() % 2 == 1 ? errors[middle] : 0.5 * (errors[middle - 1] + errors[middle]);
  report.max_abs_error = errors.back();
}

}  // namespace

ValidationReport validate_file(const std::string& path) {
  const JsonValue json = JsonValue::read_file(path);
  if (!json.is_array() || json.elements().empty() || !json.elements().front().is_object() ||
      !json.elements().front().has("measured"))
    json.fail("holds no training cases",
              "give a list of cases with system, model, plan and measured");
  ValidationReport report;
  report.file = path;
  report.kind = "training";
  for (const TrainingCase& training_case : read_training_cases(json))
    predict(training_case, report);
  sum_up(report);
  return report;
}

}  // namespace orrery
