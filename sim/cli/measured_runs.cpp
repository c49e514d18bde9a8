#include "sim/cli/measured_runs.hpp"

#include <limits>
#include <set>
#include <sstream>

#include "sim/cli/scenario_options.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"
#include "sim/validation/serving_case.hpp"
#include "sim/validation/training_case.hpp"
#include "sim/validation/validate.hpp"

namespace orrery {
namespace {

// A run that was measured did fit, whatever is predicted of its memory.
Result predicted(const Scenario& scenario) {
  Detail detail;
  detail.most_memory = std::numeric_limits<double>::infinity();
  return estimate(scenario, detail).result;
}

// Notes a measured time that is likely of another plan, or in other units.
void note_doubt(const std::string& run, Seconds measured, Seconds step) {
  constexpr double most = 3.0;
  if (measured < most * step && step < most * measured) return;
  print_note(run + " was measured as " + nine_digits(measured.si()) + " s, where " +
             nine_digits(step.si()) + " s are predicted: are its units and its plan right?");
}

MeasuredRun measured_run(const TrainingCase& one) {
  const Scenario scenario = scenario_of(one);
  const Result result = predicted(scenario);
  const Seconds measured = one.measured_step(result.step_time, result.tokens_per_s_per_gpu);
  note_doubt(one.id, measured, result.step_time);
  return {measured, result.range, plan_of_a_replica(scenario)};
}

MeasuredRun imported_run(const std::string& file, const JsonValue& json,
                         const std::optional<std::string>& system) {
  const auto measured = json.find("measured");
  if (!measured)
    json.fail("holds no measured step",
              "import the run with its log, which prints times of iterations, or write a list of "
              "cases (docs/guides/import-measurements.md)");
  ScenarioOptions run;
  run.plan = file;
  run.system = system;
  const Scenario scenario = read_scenario(run);
  const Result result = predicted(scenario);
  const Seconds step{measured->at("step_s").number(1e-9, 1e9)};
  note_doubt(file, step, result.step_time);
  return {step, result.range, plan_of_a_replica(scenario)};
}

}  // namespace

ServingRunsByFigure read_serving_runs(const std::string& listed, const ServingSetup& setup) {
  constexpr std::size_t most = 200;
  std::map<ServingFigure, std::vector<MeasuredServing>> measured;
  if (listed.empty()) return {};
  std::istringstream files{listed};
  for (std::string file; std::getline(files, file, ',');) {
    const JsonValue json = JsonValue::read_file(file);
    std::map<std::string, ServingPlace> places;
    if (!json.is_array()) json.fail("is no list of cases", "make one by orrery import bench");
    const std::vector<JsonValue> cases = json.elements();
    if (cases.size() > most)
      json.fail("holds " + std::to_string(cases.size()) + " runs", "give at most 200 of them");
    for (const JsonValue& entry : cases) {
      const ServingCase one = read_serving_case(entry);
      places[one.id] = {read_serving_engine(one.engine, one.place / "engine").name, one.model.name,
                        read_system(one.system, one.place / "system").name};
    }
    bool any = false;
    const ValidationReport report = validate_file(file);
    for (const Comparison& one : report.comparisons) {
      const auto figure = serving_figure(one.quantity);
      if (!figure || !(one.measured > 0.0) || !(one.predicted > 0.0)) continue;
      any = true;
      // A run with both throughputs counts with that of answers.
      const bool again = one.quantity == "total_tokens_per_s" && !measured[*figure].empty() &&
                         measured[*figure].back().run == one.id;
      if (!again)
        measured[*figure].push_back({one.id, places.at(one.id), one.measured, one.predicted});
    }
    if (!any && !report.refusals.empty()) json.fail(report.refusals.front().reason, "");
    if (!any) json.fail("holds no ttft_ms, tpot_ms or output_tokens_per_s", "give measured ones");
  }
  ServingRunsByFigure by_figure;
  const ServingPlace place{setup.engine.name, setup.model.name, setup.system.name};
  for (const auto& [figure, runs] : measured)
    if (!runs.empty()) by_figure[figure] = serving_by_runs(figure, place, runs);
  return by_figure;
}

std::vector<MeasuredRun> read_measured_runs(const std::string& listed,
                                            const std::optional<std::string>& system) {
  constexpr std::size_t most = 200;
  std::vector<MeasuredRun> runs;
  std::set<std::string> named;
  std::istringstream files{listed};
  for (std::string part; std::getline(files, part, ',');) {
    const std::string file{trimmed(part)};
    const JsonValue json = JsonValue::read_file(file);
    if (!named.insert(file).second) json.fail("is named twice", "name each file of runs once");
    if (!json.is_array()) {
      runs.push_back(imported_run(file, json, system));
      continue;
    }
    const std::size_t before = runs.size();
    for (const TrainingCase& one : read_training_cases(json))
      if (one.step_time || one.tokens_rate) runs.push_back(measured_run(one));
    if (runs.size() == before)
      json.fail("holds no measured step",
                "give a case its measured.step_time_s or tokens_per_s_per_gpu");
    if (runs.size() > most)
      json.fail("makes " + std::to_string(runs.size()) + " runs", "give at most 200 of them");
  }
  return runs;
}

}  // namespace orrery
