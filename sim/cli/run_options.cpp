#include "sim/cli/run_options.hpp"

#include <algorithm>
#include <thread>

#include "sim/cli/scenario_options.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"

namespace po = boost::program_options;

namespace orrery {
namespace {

constexpr int most_replicates = 100'000;
constexpr int most_seed = 1 << 30;
constexpr int most_servers = 1 << 20;

po::typed_value<std::string>* text(const char* shown) {
  return po::value<std::string>()->value_name(shown);
}

// Of the option, or of the plan file, which an import writes.
BatchRamp ramp_of(const ParsedOptions& parsed) {
  if (parsed.has("ramp") && parsed.text("ramp") == "none") return {};
  if (parsed.has("ramp")) return parse_batch_ramp(parsed.text("ramp"), {"", "--ramp"});
  if (!parsed.has("plan")) return {};
  const auto ramp = read_plan_file(parsed.text("plan"), {"", "--plan"}).find("ramp");
  return ramp ? parse_batch_ramp(ramp->text(), ramp->place()) : BatchRamp{};
}

EvictionRule eviction_of(const std::string& text) {
  if (text == "best") return {};
  return {parse_percent(text, "--evict")};
}

}  // namespace

double parse_percent(const std::string& text, const std::string& option) {
  std::string_view word = text;
  const bool marked = word.ends_with('%');
  if (marked) word.remove_suffix(1);
  if (word.ends_with(' ')) word.remove_suffix(1);
  const auto value = plain_number(word);
  if (!marked || !value || *value <= 0.0 || *value > 1000.0)
    fail_input({option, ""}, "'" + shown_text(text) + "' is no share", "write it like 5%");
  return *value / 100.0;
}

po::options_description run_policy_options() {
  po::options_description options{"Failures, and what is done about them", 100};
  options.add_options()  //
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
      ("evict", text("SHARE|best"),
       "replace GPUs that make the step longer by so much, as 1%, or whenever it pays (default: "
       "slow GPUs stay)")  //
      ("speeds",
       "healthy GPUs differ as the profile has it (default: all as fast as steps are priced)")  //
      ("elastic", "go on without the replicas whose nodes are in repair")                       //
      ("ramp", text("LIST"),
       "a batch that grows up to --gbs, as \"0:512 252B:1024 2.87T:2048\" or Megatron-LM's \"192 "
       "16 "
       "9765625\"; none: not that of the plan file");
  return options;
}

po::options_description run_draw_options() {
  po::options_description options{"What is drawn", 100};
  options.add_options()                                          //
      ("replicates", text("N"), "runs to draw (default: 1000)")  //
      ("seed", text("N"), "which ones (default: 1)");
  return options;
}

RunQuestion run_question(const ParsedOptions& parsed) {
  RunQuestion question;
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
  if (parsed.has("evict")) policy.evict = eviction_of(parsed.text("evict"));
  policy.speeds = parsed.has("speeds");
  question.workers = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  policy.ramp = ramp_of(parsed);
  if (parsed.has("replicates"))
    question.replicates = parse_count(parsed.text("replicates"), "replicates", 2, most_replicates);
  if (parsed.has("seed"))
    question.seed =
        static_cast<std::uint64_t>(parse_count(parsed.text("seed"), "seed", 0, most_seed));
  return question;
}

void take_profile_of_faults(RunQuestion& question, const Scenario& scenario) {
  if (!question.faults) return;
  question.reliability = profile_of(*question.faults, question.reliability, gpus_of_unit(scenario));
  question.reliability.batches.clear();  // Each is replayed when it came.
}

}  // namespace orrery
