#include <iostream>

#include "sim/cli/run_options.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/write_file.hpp"
#include "sim/explorer/run_report.hpp"
#include "sim/reliability/training_run.hpp"
#include "sim/reliability/training_run_text.hpp"
#include "sim/training/estimate.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

po::options_description answer_options() {
  po::options_description options{"What is asked", 100};
  const auto text = [](const char* shown) { return po::value<std::string>()->value_name(shown); };
  options.add_options()                                    //
      ("tokens", text("N"), "tokens to train on, as 15T")  //
      ("slow", text("SHARE"),
       "what a GPU costs that is so much slower, as 5%, by the stage that it sits in")  //
      ("economics", text("FILE"),
       "your prices and powers, over those of topologies/economics")       //
      ("json", "print orrery.run/1 instead of the table")                  //
      ("csv", text("FILE"), "write a line for each run that was drawn")    //
      ("html", text("FILE"), "write a page with the run from day to day")  //
      ("force", "replace files that Orrery did not write")                 //
      ("help", "this text");
  return options;
}

}  // namespace

int run_run(const Arguments& arguments) {
  po::options_description options;
  options.add(scenario_options())
      .add(simulator_option())
      .add(memory_option())
      .add(run_policy_options())
      .add(run_draw_options())
      .add(answer_options());
  const ParsedOptions parsed = parse_options(options, arguments, scenario_booleans());
  if (parsed.has("help")) {
    std::cout << "usage: orrery run --model M --system S --gpus N --gbs B --tokens T [options]\n\n"
                 "A whole training run with failures, checkpoints and spares "
                 "(docs/guides/whole-runs.md).\n\n"
              << options;
    return exit_ok;
  }
  if (!parsed.words.empty())
    fail_input({}, "'" + parsed.words[0] + "' belongs to no option", "see orrery run --help");
  const SimulatorChoice simulator{simulator_of(parsed)};
  const std::string tokens = required(parsed, "tokens", "say how much to train: --tokens 15T");
  RunQuestion question = run_question(parsed);
  question.tokens = parse_tokens(tokens, {"--tokens", ""});
  if (parsed.has("slow")) question.slower = parse_percent(parsed.text("slow"), "--slow");
  const Scenario scenario = read_scenario(parsed);
  take_profile_of_faults(question, scenario);
  const Economics economics = read_economics(
      scenario.system.gpu.name, parsed.has("economics") ? parsed.text("economics") : "");
  Detail detail;
  detail.most_memory = memory_limit_of(parsed);
  const TrainingRun run = [&] {
    LongWork line;
    const Seconds step = estimate(scenario, detail).result.step_time;
    return training_run(scenario, step, question, economics);
  }();
  OutputFiles files{parsed.has("force")};
  if (parsed.has("csv")) files.add(parsed.text("csv"), training_run_csv(run.runs));
  if (parsed.has("html"))
    files.add(parsed.text("html"), run_report(run, middle_run(run.prepared, run.question, run.runs),
                                              {typed_command("run", arguments)}));
  files.commit();
  std::cout << (parsed.has("json") ? training_run_json(run) : training_run_text(run));
  return exit_ok;
}

}  // namespace orrery
