#include "sim/cli/commands/measured_runs.hpp"

#include <sstream>

#include "sim/analysis/cases/training_case.hpp"
#include "sim/cli/options/memory_option.hpp"
#include "sim/cli/options/scenario_options.hpp"

namespace orrery {
namespace {

StepRange predicted(const Scenario& scenario, const ParsedOptions& parsed) {
  Detail detail;
  detail.most_memory = memory_limit_of(parsed);
  return estimate(scenario, detail).result.range;
}

MeasuredRun imported_run(const std::string& file, const JsonValue& json,
                         const ParsedOptions& parsed) {
  const auto measured = json.find("measured");
  if (!measured)
    json.fail("holds no measured step",
              "import the run with its log, which prints times of iterations, or write a list of "
              "cases (docs/VALIDATION.md)");
  Arguments arguments{"--plan", file};
  if (parsed.has("system")) arguments.insert(arguments.end(), {"--system", parsed.text("system")});
  const auto options = scenario_options();
  const ParsedOptions of_run = parse_options(options, arguments, scenario_booleans());
  return {Seconds{measured->at("step_s").number(1e-9, 1e9)},
          predicted(read_scenario(of_run), parsed)};
}

}  // namespace

std::vector<MeasuredRun> read_measured_runs(const ParsedOptions& parsed) {
  constexpr std::size_t most = 200;
  std::vector<MeasuredRun> runs;
  std::istringstream files{parsed.text("runs")};
  for (std::string file; std::getline(files, file, ',');) {
    const JsonValue json = JsonValue::read_file(file);
    if (!json.is_array()) {
      runs.push_back(imported_run(file, json, parsed));
      continue;
    }
    const std::size_t before = runs.size();
    for (const TrainingCase& one : read_training_cases(json))
      if (one.step_time) runs.push_back({*one.step_time, predicted(scenario_of(one), parsed)});
    if (runs.size() == before)
      json.fail("holds no measured step", "give a case its measured.step_time_s");
    if (runs.size() > most)
      json.fail("makes " + std::to_string(runs.size()) + " runs", "give at most 200 of them");
  }
  return runs;
}

}  // namespace orrery
