#include <cstdlib>
#include <iostream>
#include <optional>

#include "calibration/host/work_list.hpp"
#include "sim/calibration/shapes.hpp"
#include "sim/cli/measured_runs.hpp"
#include "sim/cli/run_options.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/cluster/economics.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/write_file.hpp"
#include "sim/explorer/reports.hpp"
#include "sim/plan/unlikely_inputs.hpp"
#include "sim/reliability/reliability_text.hpp"
#include "sim/reliability/training_run.hpp"
#include "sim/search/single_changes.hpp"
#include "sim/training/chrome_trace.hpp"
#include "sim/training/estimate.hpp"
#include "sim/training/result_json.hpp"
#include "sim/training/training_text.hpp"

namespace orrery {
namespace {

// The options that choose what is printed and written.
struct EstimateOptions {
  std::optional<double> tokens;
  std::optional<std::string> reliability, economics, runs, html, perfetto, unmeasured;
  std::optional<Seconds> measured;
  TraceOptions shown;
  bool json = false, changes = false, verbose = false, links = false, force = false,
       no_timing = false;
};

void add_output(Options& options, EstimateOptions& into, Detail& detail) {
  options.group("Output");
  options.add("tokens", "N", "tokens to train on, as 15T: adds training time, cost and energy",
              into.tokens, parse_tokens);
  options.add("reliability", "NAME|FILE",
              "adds to --tokens how long it takes with failures: orrery list reliability",
              into.reliability);
  options.add("economics", "FILE[,FILE]",
              "your prices and powers, over those of topologies/economics", into.economics);
  options.add("runs", "LIST",
              "files of runs of yours that were measured: cases as orrery validate reads them, or "
              "runs imported with their logs; adds what this step takes as they did",
              into.runs);
  options.add("json", "print the result object (orrery.result/1) instead of the table", into.json);
  options.add("measured", "TIME",
              "step time that was measured or published, as 17.52s: the first sentence compares "
              "the prediction with it",
              into.measured, parse_duration);
  options.add("changes", "try one change of the plan at a time, and list what shortens the step",
              into.changes);
  options.add(
      "verbose",
      "where the times come from, how other runs turned out, the busiest link, and what was "
      "simulated",
      into.verbose);
  options.add("links", "print a table of all classes of links and who uses them", into.links);
  options.add("html", "FILE",
              "write a report for a browser: one file with drawings, to keep or to send",
              into.html);
  options.add("perfetto", "FILE",
              "write the timeline as Chrome trace JSON; open it at ui.perfetto.dev", into.perfetto);
  options.add(
      "perfetto-ranks", "LIST", "ranks to draw, as 0,8,16-23 (default: all that are simulated)",
      [&into](const std::string& text, const Place&) { into.shown.ranks = parse_ranks(text); });
  options.add("unmeasured", "FILE",
              "write the shapes that were not measured, heaviest first, for orrery calibrate gpu "
              "--shapes",
              into.unmeasured);
  options.add("unfolded", "simulate every rank instead of one of each equivalence class",
              detail.unfolded);
  options.add("expanded", "simulate every tensor-parallel collective as flows", detail.expanded);
  options.add("force", "replace files that Orrery did not write", into.force);
  options.add("no-timing",
              "leave out how long the estimate took, so that the same question prints the same "
              "bytes",
              into.no_timing);
  options.help();
}

// The step time that the user states, or the median of the log from which the plan was imported.
std::optional<Seconds> measured_step(const EstimateOptions& given,
                                     const std::optional<std::string>& plan) {
  if (given.measured && *given.measured <= Seconds{})
    fail_input(command_line / "measured", "is not above 0", "write --measured 17.52s");
  if (given.measured || !plan) return given.measured;
  const auto measured = read_plan_file(*plan).find("measured");
  if (!measured) return std::nullopt;
  return Seconds{measured->at("step_s").number(1e-9, 1e9)};
}

std::optional<RunQuestion> question_of(const EstimateOptions& given,
                                       const std::optional<std::string>& plan) {
  if (!given.reliability) return std::nullopt;
  const Place at = command_line / "reliability";
  if (!given.tokens)
    fail_input(at, "failures of which run?", "say how long to train: --tokens 15T");
  if (given.json)
    fail_input(at, "adds a line to the table, which --json has no place for",
               "use orrery run --json");
  RunOptions usual;
  usual.reliability = *given.reliability;
  RunQuestion question = run_question(usual, plan);
  question.tokens = *given.tokens;
  return question;
}

std::string missing_text(const Result& result, EstimateContext& context) {
  const Scenario& scenario = result.scenario;
  const KernelModel& kernels = context.kernels(scenario.plan.dtype);
  const Layout& layout = context.layout(Placement{scenario.plan, scenario.system});
  const Pricer pricer{kernels, context.collectives(scenario.plan), layout.shapes, scenario.software,
                      scenario.system.gpu};
  return calibration::work_list_json(
      missing_shapes(scenario, kernels, pricer, result.busiest_stage));
}

}  // namespace

int run_estimate(const Arguments& arguments) {
  ScenarioOptions inputs;
  Detail detail;
  EstimateOptions given;
  Options options{""};
  add_scenario(options, inputs);
  add_simulator(options);
  add_memory_option(options, detail);
  add_host_memory_option(options, detail.host_memory);
  add_output(options, given, detail);
  options.basic({"model",    "system", "gpus", "plan", "tp",       "pp",    "cp",
                 "ep",       "gbs",    "mbs",  "seq",  "zero",     "dtype", "recompute",
                 "software", "tokens", "json", "html", "perfetto", "help"});
  if (!options.read(arguments,
                    "usage: orrery estimate --model M --system S --gpus N --gbs B [options]"))
    return exit_ok;
  options.refuse_words("see orrery estimate --help");

  const Scenario scenario = read_scenario(inputs);
  if (given.tokens) note_doubt(unlikely_tokens(*given.tokens, scenario.plan.seq));
  // Errors in prices are reported before the work is done.
  std::optional<Economics> economics;
  if (given.tokens)
    economics = read_economics(scenario.system, given.economics.value_or(""));
  else
    options.refuse({"economics"}, "prices of what?", "say how long to train: --tokens 15T");
  const std::optional<Seconds> measured = measured_step(given, inputs.plan);
  const std::optional<RunQuestion> run = question_of(given, inputs.plan);
  if (given.json)
    options.refuse({"changes", "links", "verbose"}, "prints a table, which --json has no place for",
                   "leave one of them out");
  if (!given.perfetto)
    options.refuse({"perfetto-ranks"}, "ranks of which drawing?",
                   "add --perfetto FILE, or leave it out");
  std::vector<MeasuredRun> own_runs;
  if (given.runs) own_runs = read_measured_runs(*given.runs, inputs.system);
  EstimateContext context{scenario.system};
  Estimate answer = long_work([&] { return estimate(scenario, context, detail); });
  const std::string interrupted = run ? sampled_run_line(long_work([&] {
    return sampled_run(scenario, answer.result.step_time, *run, *economics);
  }))
                                      : "";
  if (economics)
    answer.result.bill = bill_of(scenario, answer.result.step_time, *given.tokens, *economics);
  answer.result.measured = measured;
  if (!own_runs.empty())
    answer.result.by_runs = by_runs(answer.result.range, plan_of_a_replica(scenario), own_runs);
  OutputFiles files{given.force};
  if (given.perfetto) {
    given.shown.warnings = answer.result.warnings;
    files.add(*given.perfetto, chrome_trace(answer.step, answer.timeline, scenario, given.shown));
  }
  if (given.html)
    files.add(*given.html,
              estimate_report(answer, context, {typed_command("estimate", arguments)}));
  if (given.unmeasured) files.add(*given.unmeasured, missing_text(answer.result, context));
  files.commit();
  const bool timing = !given.no_timing;
  std::cout << (given.json ? result_json(answer.result, {.about_this_run = timing})
                           : summary_text(answer.result, {.colour = wants_colour(),
                                                          .links = given.links,
                                                          .verbose = given.verbose,
                                                          .wall_time = timing}));
  std::cout << interrupted;
  if (given.changes) {
    const std::vector<SingleChange> changes =
        long_work([&] { return single_changes(answer.result, context, detail); });
    std::cout << "\n" << changes_text(changes);
  }
  return exit_ok;
}

}  // namespace orrery
