#include <iostream>

#include "sim/analysis/estimate/estimate.hpp"
#include "sim/analysis/run/run_worth.hpp"
#include "sim/base/text/json_value.hpp"
#include "sim/base/text/output_files.hpp"
#include "sim/base/text/quantity_text.hpp"
#include "sim/base/text/text_file.hpp"
#include "sim/cli/options/long_work.hpp"
#include "sim/cli/options/memory_option.hpp"
#include "sim/cli/options/scenario_options.hpp"
#include "sim/output/runs/training_run_text.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

constexpr int most_spares = 1 << 16;
constexpr int most_replicates = 100'000;
constexpr int most_seed = 1 << 30;
constexpr int most_servers = 1 << 20;

po::options_description run_options() {
  po::options_description options{"The run", 100};
  const auto text = [](const char* shown) { return po::value<std::string>()->value_name(shown); };
  options.add_options()                                    //
      ("tokens", text("N"), "tokens to train on, as 15T")  //
      ("reliability", text("NAME|FILE"),
       "how often what fails: orrery list reliability (default: default)")  //
      ("faults", text("NAME|FILE"),
       "replay these faults of servers instead of drawing failures; the profile says what follows "
       "from them")                                                                      //
      ("servers", text("N"), "of the fleet that had them, where the file does not say")  //
      ("checkpoint", text("LIST"),
       "how often the job saves where, as 10min, store:1h,peer:1step or best (default: best)")  //
      ("storage", text("RATE"),
       "what the file system sustains, as \"2 TB/s\" (default: the profile's for each GPU)")  //
      ("spares", text("N"),
       "nodes, or NVLink domains, that wait (default: one is always at hand)")  //
      ("elastic", "go on without the replicas whose nodes are in repair")       //
      ("slow", text("SHARE"),
       "what a GPU costs that is so much slower, as 5%, by the stage that it sits in")  //
      ("economics", text("FILE"),
       "your prices and powers, over those of topologies/economics")     //
      ("replicates", text("N"), "runs to draw (default: 1000)")          //
      ("seed", text("N"), "which ones (default: 1)")                     //
      ("json", "print orrery.run/1 instead of the table")                //
      ("csv", text("FILE"), "write a line for each run that was drawn")  //
      ("force", "replace files that Orrery did not write")               //
      ("help", "this text");
  return options;
}

// "5%", and "5 %" as it is printed.
double parse_percent(const std::string& text) {
  std::string_view word = text;
  const bool marked = word.ends_with('%');
  if (marked) word.remove_suffix(1);
  if (word.ends_with(' ')) word.remove_suffix(1);
  const auto value = plain_number(word);
  if (!marked || !value || *value <= 0.0 || *value > 1000.0)
    fail_input({"--slow", ""}, "'" + shown_text(text) + "' is no share", "write it like 5%");
  return *value / 100.0;
}

RunQuestion question_of(const ParsedOptions& parsed) {
  RunQuestion question;
  question.tokens = parse_tokens(required(parsed, "tokens", "say how much to train: --tokens 15T"),
                                 {"--tokens", ""});
  question.reliability = read_reliability(
      parsed.has("reliability") ? parsed.text("reliability") : "default", {"--reliability", ""});
  std::optional<int> servers;
  if (parsed.has("servers"))
    servers = parse_count(parsed.text("servers"), "servers", 1, most_servers);
  if (parsed.has("faults"))
    question.faults = read_fault_trace(parsed.text("faults"), servers, {"--faults", ""});
  else if (servers)
    fail_input({"", "--servers"}, "says how many servers had faults, but there is no --faults",
               "add --faults FILE, or leave it out");
  RunPolicy& policy = question.policy;
  if (parsed.has("checkpoint"))
    policy.checkpoints = parse_checkpoints(parsed.text("checkpoint"), {"--checkpoint", ""});
  if (parsed.has("storage"))
    policy.store = parse_bandwidth(parsed.text("storage"), {"--storage", ""});
  if (parsed.has("spares"))
    policy.spares = parse_count(parsed.text("spares"), "spares", 0, most_spares);
  policy.elastic = parsed.has("elastic");
  if (parsed.has("slow")) question.slower = parse_percent(parsed.text("slow"));
  if (parsed.has("replicates"))
    question.replicates = parse_count(parsed.text("replicates"), "replicates", 2, most_replicates);
  if (parsed.has("seed"))
    question.seed =
        static_cast<std::uint64_t>(parse_count(parsed.text("seed"), "seed", 0, most_seed));
  return question;
}

}  // namespace

int run_run(const Arguments& arguments) {
  po::options_description options;
  options.add(scenario_options()).add(memory_option()).add(run_options());
  const ParsedOptions parsed = parse_options(options, arguments, scenario_booleans());
  if (parsed.has("help")) {
    std::cout << "usage: orrery run --model M --system S --gpus N --gbs B --tokens T [options]\n\n"
                 "A whole training run with failures, checkpoints and spares (docs/GOODPUT.md).\n\n"
              << options;
    return exit_ok;
  }
  if (!parsed.words.empty())
    fail_input({}, "'" + parsed.words[0] + "' belongs to no option", "see orrery run --help");
  RunQuestion question = question_of(parsed);
  const Scenario scenario = read_scenario(parsed);
  if (question.faults)
    question.reliability =
        profile_of(*question.faults, question.reliability, gpus_of_unit(scenario));
  const Economics economics = read_economics(
      scenario.system.gpu.name, parsed.has("economics") ? parsed.text("economics") : "");
  Detail detail;
  detail.most_memory = memory_limit_of(parsed);
  const TrainingRun run = [&] {
    LongWork line;
    const Seconds step = estimate(scenario, detail).result.step_time;
    return training_run(scenario, step, question, economics);
  }();
  if (parsed.has("csv")) {
    OutputFiles files{parsed.has("force")};
    files.add(parsed.text("csv"), training_run_csv(run.runs));
    files.commit();
  }
  std::cout << (parsed.has("json") ? training_run_json(run) : training_run_text(run));
  return exit_ok;
}

}  // namespace orrery
