#include <iostream>

#include "sim/cli/run_options.hpp"
#include "sim/cli/scenario_options.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/json_value.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/text_file.hpp"
#include "sim/core/write_file.hpp"
#include "sim/explorer/reports.hpp"
#include "sim/reliability/reliability_text.hpp"
#include "sim/reliability/training_run.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {

int run_run(const Arguments& arguments) {
  ScenarioOptions inputs;
  Detail detail;
  RunOptions policy;
  double tokens = 0.0, slower = 0.0;
  std::string prices;
  std::optional<std::string> lines, html;
  bool json = false, force = false;
  Options options{""};
  add_scenario(options, inputs);
  add_simulator(options);
  add_memory_option(options, detail);
  add_run_policy(options, policy);
  add_run_samples(options, policy);
  options.group("What is asked");
  options.add("tokens", "N", "tokens to train on, as 15T", tokens, parse_tokens);
  options.add("slow", "SHARE",
              "what a GPU costs that is so much slower, as 5%, by the stage that it sits in",
              slower, parse_percent);
  options.add("economics", "FILE[,FILE]",
              "your prices and powers, over those of topologies/economics", prices);
  options.add("json", "print orrery.run/1 instead of the table", json);
  options.add("replicates-out", "FILE", "write one row of CSV for each simulated run", lines);
  options.add("html", "FILE", "write a page with the run from day to day", html);
  options.add("force", "replace files that Orrery did not write", force);
  options.help();
  options.basic({"model", "system", "gpus", "plan", "tp", "pp", "ep", "gbs", "mbs", "seq", "dtype",
                 "software", "reliability", "checkpoint", "spares", "tokens", "json", "html",
                 "help"});
  if (!options.read(arguments,
                    "usage: orrery run --model M --system S --gpus N --gbs B --tokens T "
                    "[options]\n\n"
                    "A whole training run with failures, checkpoints and spares "
                    "(docs/guides/whole-runs.md)."))
    return exit_ok;
  options.refuse_words("see orrery run --help");
  options.required("tokens", "say how much to train: --tokens 15T");
  RunQuestion question = run_question(policy, inputs.plan);
  question.tokens = tokens;
  question.slower = slower;
  const Scenario scenario = read_scenario(inputs);
  take_profile_of_faults(question, scenario);
  const Economics economics = read_economics(scenario.system, prices);
  const TrainingRun run = long_work([&] {
    const Seconds step = estimate(scenario, detail).result.step_time;
    return training_run(scenario, step, question, economics);
  });
  OutputFiles files{force};
  if (lines) files.add(*lines, training_run_csv(run.runs));
  if (html)
    files.add(*html, run_report(run, median_run(run.prepared, run.question, run.runs),
                                {typed_command("run", arguments)}));
  files.commit();
  std::cout << (json ? training_run_json(run) : training_run_text(run));
  return exit_ok;
}

}  // namespace orrery
