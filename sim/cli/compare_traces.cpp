#include "sim/cli/compare_traces.hpp"

#include <iostream>
#include <optional>

#include "sim/calibration/driver_name.hpp"
#include "sim/cli/engine_option.hpp"
#include "sim/cli/long_work.hpp"
#include "sim/cli/memory_option.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/plan/placement.hpp"
#include "sim/profile/profile_text.hpp"
#include "sim/training/estimate.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

// The stage of the plan on which the trace's rank is, else the one that everybody waits for.
int stage_of(const KinetoTrace& trace, const Result& result, std::vector<std::string>& notes) {
  const Scenario& scenario = result.scenario;
  const int gpus = scenario.plan.gpus();
  if (trace.ranks > 0 && trace.ranks != gpus)
    notes.push_back("the trace is of a job of " + grouped(trace.ranks) + " ranks, the plan of " +
                    grouped(gpus) + ": they do different work.");
  const bool told =
      trace.rank >= 0 && trace.rank < gpus && (trace.ranks == 0 || trace.ranks == gpus);
  if (told)
    return Placement{scenario.plan, scenario.system}
        .coordinates(Rank{static_cast<int>(trace.rank)})
        .stage;
  if (scenario.plan.pp > 1)
    notes.push_back("which stage the trace is of is not told; the busiest one of the plan, " +
                    std::to_string(result.busiest_stage) + ", stands beside it.");
  return result.busiest_stage;
}

void compare_gpus(const KinetoTrace& trace, const Gpu& gpu, std::vector<std::string>& notes) {
  const std::string traced = catalog_gpu(trace.device.name);
  if (!trace.device.name.empty() && traced != gpu.name)
    notes.push_back("the trace is of '" + shown_text(trace.device.name) + "', the plan's GPU is " +
                    gpu.name + ".");
}

std::optional<std::int64_t> step_of(const ParsedOptions& parsed) {
  constexpr int most = 1 << 30;
  if (!parsed.has("step")) return std::nullopt;
  return parse_count(parsed.text("step"), "step", 0, most);
}

}  // namespace

po::options_description trace_options() {
  po::options_description options{"A plan beside profiles of its run", 100};
  options.add_options()  //
      ("trace", po::value<std::string>()->value_name("FILE"),
       "a trace of PyTorch's profiler, .json or .json.gz; more of them may follow: the plan is the "
       "one that the options name, and every nanosecond of a step stands beside it")  //
      ("step", po::value<std::string>()->value_name("N"),
       "of the trace, ProfilerStep#N (default: the one of median length)")  //
      ("names", po::value<std::string>()->value_name("FILE"),
       "what your kernels and process groups do, before workloads/kernel_names.json");
  return options;
}

int compare_traces(const ParsedOptions& parsed, const std::vector<std::string>& more) {
  std::vector<std::string> files{parsed.text("trace")};
  files.insert(files.end(), more.begin(), more.end());
  const KernelNames names{parsed.has("names") ? parsed.text("names") : ""};
  const std::optional<std::int64_t> step = step_of(parsed);
  const Scenario scenario = read_scenario(parsed);
  const Detail detail{.engine = engine_of(parsed),
                      .host_memory = host_memory_of(parsed),
                      .most_memory = memory_limit_of(parsed)};
  std::vector<ProfiledRank> ranks;
  const Result result = [&] {
    LongWork line;
    return estimate(scenario, detail).result;
  }();
  for (const std::string& file : files) {
    const KinetoTrace trace = read_kineto(file);
    std::vector<std::string> notes;
    const int stage = stage_of(trace, result, notes);
    compare_gpus(trace, scenario.system.gpu, notes);
    ranks.push_back(profile_against_plan(trace, profile_step(trace, names, step), result, stage));
    ranks.back().notes = std::move(notes);
  }
  std::cout << (parsed.has("json") ? profile_json(result, ranks) : profile_text(result, ranks));
  return exit_ok;
}

}  // namespace orrery
