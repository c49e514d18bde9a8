#include <algorithm>
#include <iostream>
#include <optional>

#include "sim/calibration/fit.hpp"
#include "sim/cli/options.hpp"
#include "sim/cli/run_options.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/write_file.hpp"
#include "sim/explorer/reports.hpp"
#include "sim/plan/placement.hpp"
#include "sim/profile/profile_text.hpp"
#include "sim/training/estimate.hpp"
#include "sim/training/result_json.hpp"

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
  const Detail detail{.host_memory = host_memory_of(parsed),
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

namespace {

constexpr std::size_t most_plans = 26;  // A letter each.

po::options_description compare_options() {
  po::options_description options{"What comes out", 100};
  options.add_options()  //
      ("tokens", po::value<std::string>()->value_name("N"),
       "also what a whole run on them takes with failures, as 15T; the options above may then "
       "stand "
       "in a plan's quotes as well")  //
      ("economics", po::value<std::string>()->value_name("FILE"),
       "your prices, over those of topologies/economics")      //
      ("json", "print orrery.compare/1 instead of the table")  //
      ("html", po::value<std::string>()->value_name("FILE"),
       "write a report for a browser: what the steps wait for, side by side")  //
      ("force", "replace files that Orrery did not write")                     //
      ("help", "this text");
  return options;
}

po::options_description all_options() {
  po::options_description options;
  options.add(scenario_options())
      .add(simulator_option_and_alias())
      .add(memory_option())
      .add(host_memory_option())
      .add(run_policy_options())
      .add(run_draw_options())
      .add(trace_options())
      .add(compare_options());
  return options;
}

// What a plan in quotes may say.
po::options_description plan_options() {
  po::options_description options;
  options.add(scenario_options()).add(run_policy_options());
  return options;
}

// "--tp 8 --pp 4" in one word is a plan.
bool is_flags(const std::string& word) {
  return word.starts_with("--") && word.find(' ') != word.npos;
}

Arguments split(const std::string& flags) {
  Arguments words;
  for (std::size_t begin = 0; begin < flags.size();) {
    const std::size_t end = std::min(flags.find(' ', begin), flags.size());
    if (end > begin) words.push_back(flags.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

// Plans in the order in which they were named; the rest are options for all of them.
struct ComparisonRequest {
  Arguments plans;
  ParsedOptions common;
};

ComparisonRequest read_request(const Arguments& arguments) {
  Arguments flags;
  Arguments others;
  for (const std::string& word : arguments) {
    // A word that no plan can be called marks the place.
    others.push_back(is_flags(word) ? "\n" + std::to_string(flags.size()) : word);
    if (is_flags(word)) flags.push_back(word);
  }
  ComparisonRequest request{{}, parse_options(all_options(), others, scenario_booleans())};
  for (const std::string& word : request.common.words)
    request.plans.push_back(word.starts_with('\n') ? flags[std::stoul(word.substr(1))] : word);
  return request;
}

// `own` and, of `open`, where it leaves an option open, those for all plans.
ParsedOptions over_common(Arguments own, const ParsedOptions& common,
                          const po::options_description& open) {
  const po::options_description options = plan_options();
  const ParsedOptions said = parse_options(options, own, scenario_booleans());
  if (!said.words.empty())
    fail_input({}, "'" + said.words[0] + "' belongs to no option", "see orrery compare --help");
  for (const auto& option : open.options()) {
    const std::string& name = option->long_name();
    if (said.has(name) || !common.has(name)) continue;
    own.push_back("--" + name);
    if (option->semantic()->max_tokens() > 0) own.push_back(common.text(name));
  }
  return parse_options(options, own, scenario_booleans());
}

// A plan and its options; of a result those of its run alone.
struct NamedPlan {
  ComparedPlan plan;
  ParsedOptions options;
  std::string inputs;  // As the result has them; "": it has none.
};

std::string inputs_of(const JsonValue& result) {
  const auto inputs = result.find("inputs");
  return inputs && inputs->is_object() ? inputs->compact() : "";
}

JsonValue estimated(const ParsedOptions& options, const std::string& source, const Detail& detail) {
  if (!options.has("plan") && !options.has("model"))
    fail_input(
        {source, ""}, "names no model",
        "add --model for all plans, or begin it with a plan file: \"--plan FILE " + source + "\"");
  const std::string result = result_json(estimate(read_scenario(options), detail).result);
  return JsonValue::parse(result, source);
}

NamedPlan named_plan(const std::string& word, const ParsedOptions& common) {
  const Detail detail{.host_memory = host_memory_of(common),
                      .most_memory = memory_limit_of(common)};
  if (!is_flags(word)) {
    const JsonValue file = read_plan_file(word, {word, ""});
    if (file.is_object() && file.has("schema"))
      return {read_compared_plan(file, word),
              over_common({"--plan", word}, common, run_policy_options()), inputs_of(file)};
  }
  ParsedOptions options =
      over_common(is_flags(word) ? split(word) : Arguments{"--plan", word}, common, plan_options());
  const JsonValue result = estimated(options, word, detail);
  return {read_compared_plan(result, word), std::move(options), inputs_of(result)};
}

// Of which run, where there is no --tokens?
void refuse_run_options(const ParsedOptions& options) {
  for (const po::options_description& all : {run_policy_options(), run_draw_options()})
    for (const auto& option : all.options())
      if (options.has(option->long_name()))
        fail_input({"", "--" + option->long_name()}, "is about a run of weeks",
                   "say how much to train: --tokens 15T");
}

void refuse_beside_traces(const ComparisonRequest& request) {
  for (const std::string& word : request.plans)
    if (is_flags(word))
      fail_input({"", "--trace"}, "stands beside one plan, not '" + word + "'",
                 "write its options without quotes");
  for (const char* option : {"tokens", "economics"})
    if (request.common.has(option))
      fail_input({"", "--trace"}, std::string{"has nothing that --"} + option + " is about",
                 "leave one of them out");
  for (const char* option : {"html", "force"})
    if (request.common.has(option))
      fail_input({"", std::string{"--"} + option}, "is not there for traces", "use --json");
  refuse_run_options(request.common);
}

std::optional<Range> rent_of(const ComparedPlan& plan, const ParsedOptions& options) {
  const std::string file = options.has("economics") ? options.text("economics") : "";
  const Range rent = read_economics(plan.range.gpu, file).rent_usd_per_gpu_hour;
  return rent.known() ? std::optional{rent} : std::nullopt;
}

ComparedRun run_of(const NamedPlan& named, const ParsedOptions& common) {
  const ComparedPlan& plan = named.plan;
  RunQuestion question = run_question(named.options);
  const RunQuestion draws = run_question(common);
  question.replicates = draws.replicates;
  question.seed = draws.seed;
  question.tokens = parse_tokens(common.text("tokens"), {"--tokens", ""});
  const Scenario scenario = read_scenario(named.options);
  take_profile_of_faults(question, scenario);
  const Economics economics =
      read_economics(plan.range.gpu, common.has("economics") ? common.text("economics") : "");
  return {&plan, drawn_run(scenario, plan.range.step, question, economics)};
}

}  // namespace

int run_compare(const Arguments& arguments) {
  const ComparisonRequest request = read_request(arguments);
  if (request.common.has("help")) {
    std::cout << "usage: orrery compare PLAN PLAN... [options]\n\n"
                 "A PLAN is a result (of orrery estimate --json), a search (of orrery search\n"
                 "--json: its first plan), a plan file, or options in quotes: \"--tp 8 --pp 4\".\n"
                 "Other options are for all plans.\n\n"
                 "   or: orrery compare --trace FILE... --plan PLAN [options]\n\n"
                 "A plan beside profiles of its ranks.\n\n"
              << all_options();
    return exit_ok;
  }
  const SimulatorChoice simulator{simulator_or_alias_of(request.common)};
  if (request.common.has("trace")) {
    refuse_beside_traces(request);
    return compare_traces(request.common, request.plans);
  }
  for (const char* option : {"step", "names"})
    if (request.common.has(option))
      fail_input({"", std::string{"--"} + option}, "is about a trace",
                 "name one: --trace rank0.json.gz");
  if (request.plans.size() < 2 || request.plans.size() > most_plans)
    fail_input({},
               "from 2 to 26 plans can be compared, not " + std::to_string(request.plans.size()),
               "orrery compare a.json \"--tp 8 --pp 4\"");
  if (request.common.has("plan"))
    fail_input({"", "--plan"}, "is one plan of several", "write the file without --plan");
  std::vector<NamedPlan> named;
  std::vector<ComparedPlan> plans;
  std::vector<ComparedRun> runs;
  {
    LongWork line;
    for (const std::string& word : request.plans) {
      ProgressListener::tell({Progress::Of::plans, named.size(), request.plans.size()});
      named.push_back(named_plan(word, request.common));
      plans.push_back(named.back().plan);
      if (!request.common.has("tokens")) refuse_run_options(named.back().options);
    }
    if (!request.common.has("tokens")) refuse_run_options(request.common);
    require_one_model(plans);
    if (request.common.has("tokens"))
      for (const NamedPlan& one : named) runs.push_back(run_of(one, request.common));
  }
  std::vector<PricedPlan> priced;
  std::vector<std::string> inputs;
  for (const NamedPlan& one : named) inputs.push_back(one.inputs);
  for (const ComparedPlan& plan : plans) priced.push_back({plan, rent_of(plan, request.common)});
  if (request.common.has("html")) {
    OutputFiles files{request.common.has("force")};
    files.add(request.common.text("html"),
              compare_report(priced, runs, inputs, {typed_command("compare", arguments)}));
    files.commit();
  }
  if (request.common.has("json"))
    std::cout << compare_json(priced, runs.empty() ? "" : compared_runs_json(runs));
  else
    std::cout << compare_document(priced).text()
              << (runs.empty() ? "" : compared_runs_document(runs).text());
  return exit_ok;
}

}  // namespace orrery
