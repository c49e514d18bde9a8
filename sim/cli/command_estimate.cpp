#include <cstdlib>
#include <iostream>
#include <optional>

#include "calibration/host/work_list.hpp"
#include "sim/calibration/shapes.hpp"
#include "sim/cli/measured_runs.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/cluster/economics.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/write_file.hpp"
#include "sim/explorer/estimate_report.hpp"
#include "sim/reliability/training_run.hpp"
#include "sim/reliability/training_run_text.hpp"
#include "sim/search/single_changes.hpp"
#include "sim/training/chrome_trace.hpp"
#include "sim/training/estimate.hpp"
#include "sim/training/result_json.hpp"
#include "sim/training/summary_text.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

po::options_description output_options() {
  po::options_description options{"What comes out", 100};
  options.add_options()  //
      ("tokens", po::value<std::string>()->value_name("N"),
       "tokens to train on, as 15T: adds how long that takes, what it costs and draws")  //
      ("reliability", po::value<std::string>()->value_name("NAME|FILE"),
       "adds to --tokens how long it takes with failures: orrery list reliability")  //
      ("economics", po::value<std::string>()->value_name("FILE"),
       "your prices and powers, over those of topologies/economics")  //
      ("runs", po::value<std::string>()->value_name("LIST"),
       "files of runs of yours that were measured: cases as orrery validate reads them, or runs "
       "imported with their logs; adds what this step takes as they did")         //
      ("json", "print the result object (orrery.result/1) instead of the table")  //
      (
          "measured", po::value<std::string>()->value_name("TIME"),
          "step time that was measured or published, as 17.52s: the first sentence compares with "
          "it")  //
      ("changes",
       "try one change of the plan at a time, and list what shortens the step")  //
      ("verbose",
       "where the times come from, how other runs turned out, the busiest link, and what was "
       "simulated")                                                         //
      ("links", "print a table of all classes of links and who uses them")  //
      ("html", po::value<std::string>()->value_name("FILE"),
       "write a report for a browser: one file with drawings, to keep or to send")  //
      ("trace", po::value<std::string>()->value_name("FILE"),
       "write the timeline as Chrome trace JSON; open it at ui.perfetto.dev")  //
      ("trace-ranks", po::value<std::string>()->value_name("LIST"),
       "ranks to draw, as 0,8,16-23 (default: all that are simulated)")  //
      ("missing", po::value<std::string>()->value_name("FILE"),
       "write the shapes that nobody measured, heaviest first, for orrery calibrate gpu "
       "--shapes")                                                          //
      ("unfolded", "simulate every rank instead of one for all its twins")  //
      ("expanded", "simulate every tensor-parallel collective as flows")    //
      ("force", "replace files that Orrery did not write")                  //
      ("no-timing",
       "leave out how long the estimate took, so that the same question prints the same bytes")  //
      ("help", "this text");
  return options;
}

// The step time that the user states, or that of the log from which the plan was imported.
std::optional<Seconds> measured_step(const ParsedOptions& parsed) {
  if (parsed.has("measured")) {
    const Seconds step = parse_duration(parsed.text("measured"), {"--measured", ""});
    if (step <= Seconds{})
      fail_input({"--measured", ""}, "is not above 0", "write --measured 17.52s");
    return step;
  }
  if (!parsed.has("plan")) return std::nullopt;
  const auto measured = read_plan_file(parsed.text("plan"), {"--plan", ""}).find("measured");
  if (!measured) return std::nullopt;
  return Seconds{measured->at("step_s").number(1e-9, 1e9)};
}

std::optional<RunQuestion> run_question(const ParsedOptions& parsed, double tokens) {
  if (!parsed.has("reliability")) return std::nullopt;
  if (!parsed.has("tokens"))
    fail_input({"--reliability", ""}, "failures of which run?",
               "say how long to train: --tokens 15T");
  if (parsed.has("json"))
    fail_input({"--reliability", ""}, "adds a line to the table, which --json has no place for",
               "use orrery run --json");
  RunQuestion question;
  question.tokens = tokens;
  question.reliability = read_reliability(parsed.text("reliability"), {"--reliability", ""});
  question.reliability.slow = {};  // Of which the formula does not speak.
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
  po::options_description options;
  options.add(scenario_options())
      .add(simulator_option_and_alias())
      .add(memory_option())
      .add(host_memory_option())
      .add(output_options());
  const ParsedOptions parsed = parse_options(options, arguments, scenario_booleans());
  if (parsed.has("help")) {
    std::cout << "usage: orrery estimate --model M --system S --gpus N --gbs B [options]\n\n"
              << options;
    return exit_ok;
  }
  if (!parsed.words.empty())
    fail_input({}, "'" + parsed.words[0] + "' belongs to no option", "see orrery estimate --help");

  const SimulatorChoice simulator{simulator_or_alias_of(parsed)};
  const Scenario scenario = read_scenario(parsed);
  // What is wrong with prices is said before the work is done.
  std::optional<Economics> economics;
  double tokens = 0.0;
  if (parsed.has("tokens")) {
    tokens = parse_tokens(parsed.text("tokens"), {"--tokens", ""});
    economics = read_economics(scenario.system.gpu.name,
                               parsed.has("economics") ? parsed.text("economics") : "");
  } else if (parsed.has("economics")) {
    fail_input({"--economics", ""}, "prices of what?", "say how long to train: --tokens 15T");
  }
  const std::optional<Seconds> measured = measured_step(parsed);
  const std::optional<RunQuestion> run = run_question(parsed, tokens);
  if (parsed.has("changes") && parsed.has("json"))
    fail_input({"--changes", ""}, "prints a table, which --json has no place for",
               "leave one of them out");
  const std::vector<MeasuredRun> own_runs =
      parsed.has("runs") ? read_measured_runs(parsed) : std::vector<MeasuredRun>{};
  EstimateContext context{scenario.system};
  const Detail detail{parsed.has("unfolded"), parsed.has("expanded"), host_memory_of(parsed),
                      memory_limit_of(parsed)};
  Estimate answer = [&] {
    LongWork line;
    return estimate(scenario, context, detail);
  }();
  const std::string interrupted =
      run ? expected_run_text(prepare_run(scenario, answer.result.step_time, *run), *run,
                              *economics)
          : "";
  if (economics)
    answer.result.bill = bill_of(scenario, answer.result.step_time, tokens, *economics);
  answer.result.measured = measured;
  if (!own_runs.empty()) answer.result.by_runs = by_runs(answer.result.range, own_runs);
  OutputFiles files{parsed.has("force")};
  if (parsed.has("trace")) {
    TraceOptions trace;
    trace.warnings = answer.result.warnings;
    if (parsed.has("trace-ranks")) trace.ranks = parse_ranks(parsed.text("trace-ranks"));
    files.add(parsed.text("trace"), chrome_trace(answer.step, answer.timeline, scenario, trace));
  }
  if (parsed.has("html"))
    files.add(parsed.text("html"),
              estimate_report(answer, context, {typed_command("estimate", arguments)}));
  if (parsed.has("missing"))
    files.add(parsed.text("missing"), missing_text(answer.result, context));
  files.commit();
  const bool timing = !parsed.has("no-timing");
  std::cout << (parsed.has("json") ? result_json(answer.result, {.about_this_run = timing})
                                   : summary_text(answer.result, {.colour = wants_colour(),
                                                                  .links = parsed.has("links"),
                                                                  .verbose = parsed.has("verbose"),
                                                                  .wall_time = timing}));
  std::cout << interrupted;
  if (parsed.has("changes")) {
    const std::vector<SingleChange> changes = [&] {
      LongWork line;
      return single_changes(answer.result, context, detail);
    }();
    std::cout << "\n" << changes_text(changes);
  }
  return exit_ok;
}

}  // namespace orrery
