#include "sim/validation/validation_json.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/validation/coverage.hpp"
#include "sim/validation/published_summary.hpp"
#include "sim/validation/serving_coverage.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

// What predictions off by a rounding of another compiler agree on.
double rounded(double value) { return std::round(value * 1e4) / 1e4; }

Json number_or_null(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json report_json(const ValidationReport& report) {
  Json cases = Json::array();
  for (const Comparison& comparison : report.comparisons) {
    Json entry{{"id", comparison.id},
               {"quantity", comparison.quantity},
               {"measured", comparison.measured},
               {"predicted", comparison.predicted},
               {"error", comparison.error()}};
    if (comparison.range)
      entry["step_time_range"] = {{"low_s", comparison.range->low().si()},
                                  {"high_s", comparison.range->high().si()}};
    if (comparison.bounds)
      entry["measured_bounds"] = {{"low", comparison.bounds->first},
                                  {"high", number_or_null(comparison.bounds->second)}};
    if (!comparison.peer_errors.empty()) entry["peer_errors"] = comparison.peer_errors;
    cases.push_back(std::move(entry));
  }
  Json refused = Json::array();
  for (const Refusal& refusal : report.refusals)
    refused.push_back({{"id", refusal.id}, {"reason", refusal.reason}});
  Json json{{"file", report.file},
            {"kind", report.kind},
            {"cases", std::move(cases)},
            {"refused", std::move(refused)},
            {"mean_abs_error", number_or_null(report.mean_abs_error)},
            {"mean_error", number_or_null(report.mean_error)},
            {"median_abs_error", number_or_null(report.median_abs_error)},
            {"p90_abs_error", number_or_null(report.p90_abs_error)},
            {"max_abs_error", number_or_null(report.max_abs_error)}};
  for (const RowErrors& of : report.rows) {
    Json rows{{"of", of.of}};
    if (!of.part.empty()) rows["part"] = of.part;
    rows["rows"] = of.rows();
    rows["mean_abs_error"] = of.mean_abs();
    rows["median_abs_error"] = of.median_abs();
    rows["p90_abs_error"] = of.p90_abs();
    rows["median_error"] = of.bias();
    json["rows"].push_back(std::move(rows));
  }
  return json;
}

}  // namespace

std::string validation_json(const std::vector<ValidationReport>& reports) {
  Json files = Json::array();
  for (const ValidationReport& report : reports) files.push_back(report_json(report));
  Json training = Json::array();
  for (const auto& [step, error] : training_errors(reports))
    training.push_back(
        {{"experts", step.experts}, {"narrow", step.narrow}, {"error", number_or_null(error)}});
  Json published = Json::array();
  for (const PublishedClass& one : published_classes(reports))
    published.push_back({{"software", one.steps.software},
                         {"experts", one.step.experts},
                         {"narrow", one.step.narrow},
                         {"runs", one.steps.runs},
                         {"offset", rounded(one.steps.offset)},
                         {"low", rounded(one.steps.low)},
                         {"high", rounded(one.steps.high)},
                         {"prices", rounded(one.steps.prices)}});
  Json serving = Json::array();
  for (const ServingCoverage& of : serving_coverage_of(reports))
    serving.push_back({{"figure", of.figure},
                       {"experts", of.experts},
                       {"error", number_or_null(of.error)},
                       {"cases", of.cases},
                       {"in_range", of.inside},
                       {"left_out_cases", of.left_out_cases},
                       {"left_out_in_range", of.left_out_inside}});
  return Json{{"schema", "orrery.validation/1"},
              {"files", std::move(files)},
              {"training_errors", std::move(training)},
              {"published_steps", std::move(published)},
              {"serving_errors", std::move(serving)}}
             .dump(2) +
         "\n";
}

}  // namespace orrery
