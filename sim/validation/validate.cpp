#include "sim/validation/validate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/core/progress.hpp"
#include "sim/core/statistics.hpp"
#include "sim/kernels/kernel_error.hpp"
#include "sim/training/estimate.hpp"
#include "sim/validation/collective_case.hpp"
#include "sim/validation/kernel_case.hpp"
#include "sim/validation/run_case.hpp"
#include "sim/validation/serving_case.hpp"
#include "sim/validation/training_case.hpp"
#include "sim/validation/validate_kinds.hpp"

namespace orrery {
namespace {

// Peak memory of the stage whose GPU reported it.
Bytes reported_peak(const TrainingCase& training_case, const MemoryReport& memory) {
  if (!training_case.peak_memory_stage) return memory.peak();
  const auto stage = static_cast<std::size_t>(*training_case.peak_memory_stage);
  if (stage >= memory.stages.size())
    fail_input(training_case.plan.place(),
               "'peak_memory_stage' is " + std::to_string(stage) + ", but the plan has " +
                   std::to_string(memory.stages.size()) + " stages",
               "count them from 0");
  return memory.stages[stage].peak();
}

void predict(const TrainingCase& training_case, ValidationReport& report) {
  try {
    const Scenario scenario = scenario_of(training_case);
    if (training_case.peak_memory) {
      Comparison memory{training_case.id,
                        "peak_memory_bytes",
                        training_case.peak_memory->si(),
                        reported_peak(as_published(training_case), memory_of(scenario)).si(),
                        {}};
      report.comparisons.push_back(memory);
    }
    if (!training_case.step_time && !training_case.tokens_rate) {
      if (!training_case.peak_memory)
        report.refusals.push_back(
            {training_case.id,
             "measured has no step_time_s, tokens_per_s_per_gpu or peak_memory_bytes"});
      return;
    }
    // The run happened, so that memory above the usable share is tolerated.
    Detail detail;
    detail.most_memory = tolerated_share_of_memory;
    const Result result = estimate(scenario, detail).result;
    const double measured =
        training_case.measured_step(result.step_time, result.tokens_per_s_per_gpu).si();
    Comparison time{training_case.id, "step_time_s", measured, result.step_time.si(), {}};
    time.range = result.range;
    time.publication = training_case.title;
    time.plan = plan_of_a_replica(scenario);
    for (const auto& [peer, predicted] : training_case.peers)
      time.peer_errors[peer] = predicted.si() / measured - 1.0;
    report.comparisons.push_back(std::move(time));
  } catch (const Error& error) {
    report.refusals.push_back({training_case.id, error.what()});
  }
}

void sum_up(ValidationReport& report) {
  std::vector<double> errors;
  double signed_sum = 0.0;
  for (const Comparison& comparison : report.comparisons)
    if (comparison.quantity == report.main_quantity) {
      errors.push_back(comparison.error());
      signed_sum += comparison.signed_error();
    }
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  report.mean_abs_error = report.mean_error = nothing;
  report.median_abs_error = report.p90_abs_error = report.max_abs_error = nothing;
  if (errors.empty()) return;
  const auto count = static_cast<double>(errors.size());
  report.mean_error = signed_sum / count;
  report.mean_abs_error = 0.0;
  for (double& error : errors) {
    error = std::abs(error);
    report.mean_abs_error += error / count;
  }
  report.median_abs_error = median(errors);
  report.p90_abs_error = middle(errors, 0.9);
  report.max_abs_error = *std::max_element(errors.begin(), errors.end());
}

// The first of these that was measured.
std::string main_serving_quantity(const ValidationReport& report) {
  for (const char* quantity : {"tpot_ms", "decode_step_ms", "e2e_ms", "output_tokens_per_s"})
    if (!std::isnan(mean_abs_error_of(report, quantity))) return quantity;
  return "kv_cache_tokens";
}

std::string main_fleet_quantity(const ValidationReport& report) {
  for (const char* quantity : {"attainment", "throughput_ratio", "start_s", "transfer_ms"})
    if (!std::isnan(mean_abs_error_of(report, quantity))) return quantity;
  return "gpu_hit_share";
}

}  // namespace

double mean_abs_error_of(const ValidationReport& report, const std::string& quantity) {
  double sum = 0.0;
  int count = 0;
  for (const Comparison& comparison : report.comparisons)
    if (comparison.quantity == quantity) sum += std::abs(comparison.error()), ++count;
  return count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN();
}

double median_abs_error_of(const ValidationReport& report, const std::string& quantity) {
  std::vector<double> errors;
  for (const Comparison& comparison : report.comparisons)
    if (comparison.quantity == quantity) errors.push_back(std::abs(comparison.error()));
  return errors.empty() ? std::numeric_limits<double>::quiet_NaN() : median(std::move(errors));
}

ValidationReport validate_file(const std::string& path, const ValidationOptions& options) {
  const JsonValue json = JsonValue::read_file(path);
  const auto elements = json.is_array() ? json.elements() : std::vector<JsonValue>{};
  ValidationReport report;
  report.file = path;
  if (!elements.empty() && is_collective_case(elements.front())) {
    report.kind = "collectives";
    compare_collectives(json, options, report);
    report.main_quantity = "bus_bandwidth_bytes_per_s";
    for (const char* quantity : {"time_s", "time_from_1_mib_s"})
      if (std::isnan(mean_abs_error_of(report, report.main_quantity)))
        report.main_quantity = quantity;
    sum_up(report);
    return report;
  }
  if (!elements.empty() && is_exchange_case(elements.front())) {
    report.kind = "expert exchange";
    compare_exchanges(json, options, report);
    report.main_quantity = "time_s";
    sum_up(report);
    return report;
  }
  if (is_serving_table(json) || is_kernel_cases(json)) {
    report.kind = "kernels";
    report.main_quantity = "time_s";
    if (is_serving_table(json))
      compare_serving_rows(json, report);
    else
      compare_kernels(json, report);
    sum_up(report);
    return report;
  }
  if (!elements.empty() && is_run_case(elements.front())) {
    report.kind = "runs";
    report.main_quantity = "ettr";
    compare_runs(json, report);
    sum_up(report);
    return report;
  }
  if (!elements.empty() && is_fleet_case(elements.front())) {
    report.kind = "fleets";
    compare_fleets(json, report);
    report.main_quantity = main_fleet_quantity(report);
    sum_up(report);
    return report;
  }
  if (!elements.empty() && is_rl_case(elements.front())) {
    report.kind = "post-training";
    compare_rl_steps(json, report);
    const auto is_step = [](const Comparison& row) { return row.quantity == "step_time_s"; };
    report.main_quantity =
        std::any_of(report.comparisons.begin(), report.comparisons.end(), is_step) ? "step_time_s"
                                                                                   : "transfer_s";
    sum_up(report);
    return report;
  }
  if (!elements.empty() && is_serving_case(elements.front())) {
    report.kind = "serving";
    compare_serving(json, report);
    report.main_quantity = main_serving_quantity(report);
    sum_up(report);
    return report;
  }
  if (elements.empty() || !elements.front().is_object() || !elements.front().has("measured"))
    json.fail("holds no training cases",
              "give a list of cases with system, model, plan and measured");
  report.kind = "training";
  report.main_quantity = "step_time_s";
  const std::vector<TrainingCase> cases = read_training_cases(json);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    ProgressListener::report({Progress::Of::cases, i, cases.size()});
    predict(cases[i], report);
  }
  sum_up(report);
  return report;
}

// Error statistics of many rows: ValidationReport's rows.
namespace {

std::vector<double> sizes_of(const std::vector<double>& errors) {
  std::vector<double> sizes;
  for (const double error : errors) sizes.push_back(std::abs(error));
  return sizes;
}

}  // namespace

double RowErrors::mean_abs() const {
  double sum = 0.0;
  for (const double error : signed_) sum += std::abs(error);
  return sum / rows();
}

double RowErrors::median_abs() const { return median(sizes_of(signed_)); }

double RowErrors::p90_abs() const { return middle(sizes_of(signed_), 0.9); }

double RowErrors::bias() const { return median(signed_); }

std::vector<RowErrors> rows_of_all(const std::vector<ValidationReport>& reports) {
  std::vector<RowErrors> all;
  for (const ValidationReport& report : reports)
    for (const RowErrors& rows : report.rows) {
      const auto known = std::find_if(all.begin(), all.end(), [&](const RowErrors& one) {
        return one.of == rows.kind && one.part == rows.part;
      });
      if (known == all.end())
        all.push_back({rows.kind, rows.part, rows.kind, rows.signed_});
      else
        known->signed_.insert(known->signed_.end(), rows.signed_.begin(), rows.signed_.end());
    }
  return all;
}

}  // namespace orrery
