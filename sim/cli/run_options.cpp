#include "sim/cli/run_options.hpp"

#include <algorithm>
#include <thread>

#include "sim/cli/scenario_options.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/text_file.hpp"

namespace orrery {
namespace {

constexpr int most_replicates = 100'000;
constexpr int most_seed = 1 << 30;
constexpr int most_servers = 1 << 20;

EvictionRule eviction_of(const std::string& text, const Place& at) {
  if (text == "best") return {};
  return {parse_percent(text, at)};
}

Seconds refill_time(const std::string& text, const Place& at) {
  const Seconds time = parse_span(text, at);
  if (time > longest_span) fail_input(at, "is longer than 30 years", "leave it out");
  return time;
}

BatchRamp ramp_of(const std::string& text, const Place& at) {
  return text == "none" ? BatchRamp{} : parse_batch_ramp(text, at);
}

// The ramp that an import wrote.
BatchRamp ramp_of_file(const std::string& plan_file) {
  const auto ramp = read_plan_file(plan_file).find("ramp");
  return ramp ? parse_batch_ramp(ramp->text(), ramp->place()) : BatchRamp{};
}

}  // namespace

double parse_percent(const std::string& text, const Place& at) {
  std::string_view word = text;
  const bool marked = word.ends_with('%');
  if (marked) word.remove_suffix(1);
  if (word.ends_with(' ')) word.remove_suffix(1);
  const auto value = plain_number(word);
  if (!marked || !value || *value <= 0.0 || *value > 1000.0)
    fail_input(at, "'" + shown_text(text) + "' is no share", "write it like 5%");
  return *value / 100.0;
}

void add_run_policy(Options& options, RunOptions& into) {
  RunPolicy& policy = into.policy;
  options.group("Failures, and what is done about them");
  options.add("reliability", "NAME|FILE",
              "how often what fails: orrery list reliability (default: default)", into.reliability);
  options.add("faults", "NAME|FILE",
              "replay these faults of servers instead of drawing failures; the profile says what "
              "follows from them",
              into.faults);
  options.add("servers", "N", "of the fleet that had the faults, where the file does not say",
              into.servers, Counted{1, most_servers});
  options.add(
      "checkpoint", "LIST",
      "how often the job saves where, as 10min, store:1h,peer:1step or best (default: best)",
      policy.checkpoints, parse_checkpoints);
  options.add("storage", "RATE",
              "what the file system sustains, as \"2 TB/s\" (default: the profile's for each GPU)",
              policy.store, parse_bandwidth);
  options.add("spares", "N", "spare nodes (default: unlimited)", policy.spares,
              Counted{0, most_spares});
  options.add("refill", "TIME",
              "a node that is in repair for so long is replaced by a fresh one, as 4h (default: "
              "the profile's; none of the catalog has one)",
              into.refill, refill_time);
  options.add("evict", "SHARE|best",
              "replace GPUs that make the step longer by so much, as 1%, or whenever it pays "
              "(default: slow GPUs stay)",
              policy.evict, eviction_of);
  options.add(
      "speeds",
      "healthy GPUs differ as the profile has it (default: all as fast as steps are priced)",
      policy.speeds);
  options.add("elastic", "continue without the replicas whose nodes are in repair", policy.elastic);
  options.add("ramp", "LIST",
              "a batch that grows up to --gbs, as \"0:512 252B:1024 2.87T:2048\" or Megatron-LM's "
              "\"192 16 9765625\"; none: not that of the plan file",
              into.ramp, ramp_of);
}

void add_run_samples(Options& options, RunOptions& into) {
  options.group("What is drawn");
  options.add("replicates", "N", "runs to draw (default: 1000)", into.replicates,
              Counted{2, most_replicates});
  options.add("seed", "N", "which ones (default: 1)", into.seed, Counted{0, most_seed});
}

RunQuestion run_question(const RunOptions& run, const std::optional<std::string>& plan_file) {
  RunQuestion question;
  question.reliability = read_reliability(run.reliability, command_line / "reliability");
  if (run.faults && run.refill)
    fail_input(command_line / "refill", "says when nodes come back, as the record of --faults does",
               "leave one of them out");
  if (run.refill) question.reliability.refill = run.refill;
  if (run.faults)
    question.faults = read_fault_trace(*run.faults, run.servers, command_line / "faults");
  else if (run.servers)
    fail_input(command_line / "servers",
               "says how many servers had faults, but there is no --faults",
               "add --faults FILE, or leave it out");
  question.policy = run.policy;
  question.policy.ramp = run.ramp ? *run.ramp : plan_file ? ramp_of_file(*plan_file) : BatchRamp{};
  question.workers = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  question.replicates = run.replicates;
  question.seed = run.seed;
  return question;
}

void take_profile_of_faults(RunQuestion& question, const Scenario& scenario) {
  if (!question.faults) return;
  question.reliability = profile_of(*question.faults, question.reliability, gpus_of_unit(scenario));
  question.reliability.batches.clear();  // Each is replayed when it came.
}

}  // namespace orrery
