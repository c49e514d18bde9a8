#include <algorithm>
#include <iostream>
#include <optional>
#include <set>

#include "sim/calibration/fit.hpp"
#include "sim/cli/options.hpp"
#include "sim/cli/run_options.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/value_list.hpp"
#include "sim/core/write_file.hpp"
#include "sim/explorer/reports.hpp"
#include "sim/plan/placement.hpp"
#include "sim/profile/profile_text.hpp"
#include "sim/training/estimate.hpp"
#include "sim/training/result_json.hpp"

namespace orrery {
namespace {

// The stage of the plan on which the trace's rank is, else the one that everybody waits for.
int stage_of(const KinetoTrace& trace, const Result& result, std::vector<std::string>& notes) {
  const Scenario& scenario = result.scenario;
  const int gpus = scenario.plan.gpus();
  if (trace.ranks > 0 && trace.ranks != gpus)
    notes.push_back("the trace is of a job of " + grouped(trace.ranks) + " ranks, the plan of " +
                    grouped(gpus) + ": they do different work.");
  const bool known =
      trace.rank >= 0 && trace.rank < gpus && (trace.ranks == 0 || trace.ranks == gpus);
  if (known)
    return Placement{scenario.plan, scenario.system}
        .coordinates(Rank{static_cast<int>(trace.rank)})
        .stage;
  if (scenario.plan.pp > 1)
    notes.push_back(
        "the trace does not state its stage; it is compared with the busiest one of the plan, " +
        std::to_string(result.busiest_stage) + ".");
  return result.busiest_stage;
}

void compare_gpus(const KinetoTrace& trace, const Gpu& gpu, std::vector<std::string>& notes) {
  const std::string traced = catalog_gpu(trace.device.name);
  if (!trace.device.name.empty() && traced != gpu.name)
    notes.push_back("the trace is of '" + shown_text(trace.device.name) + "', the plan's GPU is " +
                    gpu.name + ".");
}

// The options for all plans: for one that is compared with traces, for several, or those that a
// plan in quotes may have.
struct CompareOptions {
  ScenarioOptions inputs;
  Detail detail;
  RunOptions run;
  std::optional<std::string> profile, html;
  std::optional<std::int64_t> step;  ///< Number in the profile.
  std::string names, economics;
  std::optional<double> tokens;
  bool json = false, force = false;
};

void add_comparison(Options& options, CompareOptions& into) {
  add_scenario(options, into.inputs);
  add_simulator(options);
  add_memory_option(options, into.detail);
  add_host_memory_option(options, into.detail.host_memory);
  add_run_policy(options, into.run);
  add_run_samples(options, into.run);
  options.group("Comparison of a plan with profiles of its run");
  options.add(
      "profile", "FILE",
      "a trace of PyTorch's profiler, .json or .json.gz; more of them may follow: the plan "
      "is the one that the options name, and every nanosecond of a step is compared with it",
      into.profile);
  options.add("profile-step", "N",
              "of the profile, ProfilerStep#N (default: the one of median length)", into.step,
              Counted{0, 1 << 30});
  options.add("names", "FILE",
              "what your kernels and process groups do, before workloads/kernel_names.json",
              into.names);
  options.group("Output");
  options.add("tokens", "N",
              "also what a whole run on them takes with failures, as 15T; the options above may "
              "then stand in a plan's quotes as well",
              into.tokens, parse_tokens);
  options.add("economics", "FILE[,FILE]",
              "your prices and powers, over those of topologies/economics", into.economics);
  options.add("json", "print orrery.compare/1 instead of the table", into.json);
  options.add("html", "FILE", "write a report for a browser: what the steps wait for, side by side",
              into.html);
  options.add("force", "replace files that Orrery did not write", into.force);
  options.help();
  options.basic({"model", "system", "gpus", "plan", "tp", "pp", "ep", "gbs", "mbs", "seq", "dtype",
                 "software", "profile", "tokens", "economics", "json", "html", "help"});
}

int compare_traces(const CompareOptions& given, const std::vector<std::string>& more) {
  std::vector<std::string> files{*given.profile};
  files.insert(files.end(), more.begin(), more.end());
  const KernelNames names{given.names};
  const Scenario scenario = read_scenario(given.inputs);
  std::vector<ProfiledRank> ranks;
  const Result result = long_work([&] { return estimate(scenario, given.detail).result; });
  for (const std::string& file : files) {
    const KinetoTrace trace = read_kineto(file);
    std::vector<std::string> notes;
    const int stage = stage_of(trace, result, notes);
    compare_gpus(trace, scenario.system.gpu, notes);
    ranks.push_back(
        profile_against_plan(trace, profile_step(trace, names, given.step), result, stage));
    ranks.back().notes = std::move(notes);
  }
  std::cout << (given.json ? profile_json(result, ranks) : profile_text(result, ranks));
  return exit_ok;
}

constexpr std::size_t most_plans = 26;  // A letter each.

// "--tp 8 --pp 4" in one word is a plan.
bool is_flags(const std::string& word) {
  return word.starts_with("--") && word.find(' ') != word.npos;
}

// A plan and its options, those for all plans where its own leave one open; of a result those of
// its run alone.
struct NamedPlan {
  ComparedPlan plan;
  ScenarioOptions inputs;
  RunOptions run;
  std::string about_run;  // An option that is about a run; "": there is none.
  std::string carried;    // The inputs as the result has them; "": it has none.
};

std::vector<std::string> names_of_run_options(bool with_samples) {
  RunOptions unused;
  Options options{""};
  add_run_policy(options, unused);
  if (with_samples) add_run_samples(options, unused);
  return names_of(options.entries());
}

// The first option about a run, which needs --tokens; "": none is given.
std::string option_about_a_run(const Options& options) {
  for (const std::string& name : names_of_run_options(true))
    if (options.has(name)) return name;
  return "";
}
void refuse_run_option(const std::string& name) {
  if (!name.empty())
    fail_input(command_line / name, "is about a run of weeks",
               "say how much to train: --tokens 15T");
}

// Reads a plan's `own` options and those for all plans that it leaves open, which are added to
// `used`; of a result only those of its run.
void read_own(const Arguments& own, const Options& common, bool is_result, NamedPlan& into,
              std::set<std::string>& used) {
  Options options{""};
  add_scenario(options, into.inputs);
  add_run_policy(options, into.run);
  options.parse(own);
  options.refuse_words("see orrery compare --help");
  for (const std::string& name :
       is_result ? names_of_run_options(false) : names_of(options.entries()))
    if (options.give(name, common)) used.insert(name);
  options.fill();
  into.about_run = option_about_a_run(options);
}

// The same of a plan that `word` names.
void name_plan(const std::string& word, const Options& common, const Detail& detail,
               NamedPlan& into, std::set<std::string>& used) {
  const Arguments own = is_flags(word) ? words_in(word) : Arguments{"--plan", word};
  JsonValue result = JsonValue::parse("{}", word);
  if (!is_flags(word)) result = read_plan_file(word);
  const bool is_result = result.is_object() && result.has("schema");
  read_own(own, common, is_result, into, used);
  if (!is_result) {
    if (!into.inputs.plan && !into.inputs.model)
      fail_input(
          {word, ""}, "names no model",
          "add --model for all plans, or begin it with a plan file: \"--plan FILE " + word + "\"");
    result =
        JsonValue::parse(result_json(estimate(read_scenario(into.inputs), detail).result), word);
    used.insert({"simulator", "ignore-memory", "host-memory"});
  }
  into.plan = read_compared_plan(result, word);
  const auto inputs = result.find("inputs");
  into.carried = inputs && inputs->is_object() ? inputs->compact() : "";
}

// Options for all plans of which no plan makes use.
void refuse_unused(const Options& options, const std::set<std::string>& used) {
  Options per_plan{""};
  CompareOptions unused;
  add_scenario(per_plan, unused.inputs);
  add_simulator(per_plan);
  add_memory_option(per_plan, unused.detail);
  add_host_memory_option(per_plan, unused.detail.host_memory);
  add_run_policy(per_plan, unused.run);
  for (const OptionEntry& one : per_plan.entries())
    if (options.has(one.name) && !used.contains(one.name))
      fail_input(command_line / one.name,
                 "is used by none of the plans: each says it itself, or is a result",
                 "leave it out");
}

void refuse_with_traces(const Options& options, const Arguments& plans) {
  const Place trace = command_line / "profile";
  for (const std::string& word : plans)
    if (is_flags(word))
      fail_input(trace, "is compared with one plan, not '" + word + "'",
                 "write its options without quotes");
  for (const char* option : {"tokens", "economics"})
    if (options.has(option))
      fail_input(trace, std::string{"has nothing that --"} + option + " is about",
                 "leave one of them out");
  options.refuse({"html", "force"}, "is not there for traces", "use --json");
  refuse_run_option(option_about_a_run(options));
}

PricedMachine machine_of(const ComparedPlan& plan) { return {plan.range.gpu, plan.range.system}; }

ComparedRun run_of(const NamedPlan& named, const CompareOptions& common,
                   const std::vector<PricedMachine>& machines) {
  const ComparedPlan& plan = named.plan;
  RunQuestion question = run_question(named.run, named.inputs.plan);
  question.replicates = common.run.replicates;
  question.seed = common.run.seed;
  question.tokens = *common.tokens;
  const Scenario scenario = read_scenario(named.inputs);
  take_profile_of_faults(question, scenario);
  return {&plan, sampled_run(scenario, plan.range.step, question,
                             read_economics(machine_of(plan), common.economics, machines))};
}

constexpr const char* compare_usage =
    "usage: orrery compare PLAN PLAN... [options]\n\n"
    "A PLAN is a result (of orrery estimate --json), a search (of orrery search\n"
    "--json: its first plan), a plan file, or options in quotes: \"--tp 8 --pp 4\".\n"
    "Other options are for all plans.\n\n"
    "   or: orrery compare --profile FILE... --plan PLAN [options]\n\n"
    "A plan compared with profiles of its ranks.";

}  // namespace

int run_compare(const Arguments& arguments) {
  Arguments flags, others;
  for (const std::string& word : arguments) {
    // A word that no plan can be called marks the place.
    others.push_back(is_flags(word) ? "\n" + std::to_string(flags.size()) : word);
    if (is_flags(word)) flags.push_back(word);
  }
  CompareOptions common;
  Options options{""};
  add_comparison(options, common);
  if (!options.read(others, compare_usage)) return exit_ok;
  Arguments words;  // Plans in the order in which they were named.
  for (const std::string& word : options.words())
    words.push_back(word.starts_with('\n') ? flags[std::stoul(word.substr(1))] : word);
  if (common.profile) {
    refuse_with_traces(options, words);
    return compare_traces(common, words);
  }
  options.refuse({"profile-step", "names"}, "is about a profile",
                 "name one: --profile rank0.json.gz");
  if (words.size() < 2 || words.size() > most_plans)
    fail_input({}, "from 2 to 26 plans can be compared, not " + std::to_string(words.size()),
               "orrery compare a.json \"--tp 8 --pp 4\"");
  options.refuse({"plan"}, "is one plan of several", "write the file without --plan");
  std::vector<NamedPlan> named(words.size());
  std::vector<ComparedPlan> plans;
  std::vector<ComparedRun> runs;
  std::vector<PricedMachine> machines;
  std::set<std::string> used;
  {
    LongWork line;
    for (std::size_t i = 0; i < words.size(); ++i) {
      ProgressListener::report({Progress::Of::plans, i, words.size()});
      name_plan(words[i], options, common.detail, named[i], used);
      plans.push_back(named[i].plan);
      if (!common.tokens) refuse_run_option(named[i].about_run);
    }
    if (!common.tokens) refuse_run_option(option_about_a_run(options));
    refuse_unused(options, used);
    require_one_model(plans);
    for (const ComparedPlan& plan : plans) machines.push_back(machine_of(plan));
    if (common.tokens)
      for (const NamedPlan& one : named) runs.push_back(run_of(one, common, machines));
  }
  std::vector<PricedPlan> priced;
  std::vector<std::string> inputs;
  for (const NamedPlan& one : named) inputs.push_back(one.carried);
  for (const ComparedPlan& plan : plans) {
    const Range rent =
        read_economics(machine_of(plan), common.economics, machines).rent_usd_per_gpu_hour;
    priced.push_back({plan, rent.known() ? std::optional{rent} : std::nullopt});
  }
  if (common.html)
    write_output(*common.html,
                 compare_report(priced, runs, inputs, {typed_command("compare", arguments)}),
                 common.force);
  if (common.json)
    std::cout << compare_json(priced, runs.empty() ? "" : compared_runs_json(runs));
  else
    std::cout << compare_document(priced).text()
              << (runs.empty() ? "" : compared_runs_document(runs).text());
  return exit_ok;
}

}  // namespace orrery
