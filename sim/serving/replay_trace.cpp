#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/number_text.hpp"
#include "sim/serving/serving_run_text.hpp"

namespace orrery {
namespace {

// chrome://tracing breaks near a million events (golang/go issue 11520).
constexpr std::size_t most_events = 500'000;
constexpr std::size_t events_of_request = 8;
constexpr std::size_t events_of_pools = 12;

std::string microseconds_of(Seconds time) {
  return microseconds_text(std::llround(time.si() * 1e9));
}

class TraceWriter {
 public:
  explicit TraceWriter(Seconds origin) : origin_{origin} {}

  void name(std::uint32_t process, const std::string& name) {
    event("{\"ph\":\"M\",\"pid\":" + std::to_string(process) +
          ",\"name\":\"process_name\",\"args\":{\"name\":\"" + name + "\"}}");
  }

  void iteration(const ReplayedIteration& of) {
    std::string name;
    if (of.decodes > 0) name = grouped(of.decodes) + (of.decodes == 1 ? " decode" : " decodes");
    if (of.steps > 1) name += " x " + grouped(of.steps);
    if (of.prompt_tokens > 0)
      name += (name.empty() ? "" : " + ") + grouped(of.prompt_tokens) + " tokens of prompts";
    event("{\"ph\":\"X\",\"pid\":" + std::to_string(of.replica + 1) + ",\"tid\":0,\"ts\":" +
          microseconds_of(of.start - origin_) + ",\"dur\":" + microseconds_of(of.end - of.start) +
          ",\"name\":\"" + name + "\",\"args\":{\"decodes\":" + std::to_string(of.decodes) +
          ",\"steps\":" + std::to_string(of.steps) +
          ",\"prompt_tokens\":" + std::to_string(of.prompt_tokens) + "}}");
  }

  // Writes spans in the order in which they open and close, which those of equal times keep.
  // `passed`: times in two pools; null: there was one.
  void request(const RequestTimes& of, const PoolTimes* passed) {
    const std::string id = std::to_string(of.request);
    const std::string whole = "request " + id;
    const Seconds prompt = of.arrival + of.queue, answer = of.arrival + of.ttft;
    const Seconds end = of.arrival + of.e2e;
    mark('b', id, whole, of.arrival);
    span(id, "wait", of.arrival, prompt);
    if (passed && passed->prefill > Seconds{}) {
      const Seconds done = prompt + passed->prefill, has_place = done + passed->place;
      span(id, "prompt", prompt, done);
      span(id, "place", done, has_place);
      span(id, "transfer", has_place, has_place + passed->transfer);
    } else {
      span(id, "prompt", prompt, answer);
    }
    span(id, "answer", answer, end);
    mark('e', id, whole, end);
  }

  std::string text() const { return text_ + "\n]}\n"; }

 private:
  void mark(char phase, const std::string& id, const std::string& name, Seconds at) {
    event(std::string{"{\"ph\":\""} + phase + "\",\"cat\":\"request\",\"pid\":0,\"id\":" + id +
          ",\"name\":\"" + name + "\",\"ts\":" + microseconds_of(at - origin_) + "}");
  }
  void span(const std::string& id, const std::string& name, Seconds from, Seconds to) {
    mark('b', id, name, from);
    mark('e', id, name, to);
  }
  void event(const std::string& json) {
    text_ += (first_ ? "\n" : ",\n") + json;
    first_ = false;
  }

  Seconds origin_;
  bool first_ = true;
  std::string text_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
};

}  // namespace

std::string replay_trace(const ServingRun& run, const Place& at) {
  const RequestReplay& replay = run.replay;
  std::vector<ReplayedIteration> iterations = replay.iterations;
  std::uint32_t prefill = 0;  // Replicas of the prefill pool, which come first.
  if (run.pools) {
    const Deployment& plan = run.pools->plan.prefill;
    prefill = static_cast<std::uint32_t>(plan.replicas * plan.dp * plan.pp);
    for (ReplayedIteration iteration : run.pools->decode_iterations) {
      iteration.replica += prefill;
      iterations.push_back(iteration);
    }
  }
  const std::size_t each = run.pools ? events_of_pools : events_of_request;
  const std::size_t events = iterations.size() + each * replay.times.size();
  if (events > most_events)
    fail_infeasible(at,
                    "the trace has " + grouped(static_cast<std::int64_t>(events)) +
                        " events, and viewers bear " + grouped(most_events),
                    "ask for fewer requests: --requests, or --first of a trace");
  Seconds origin = Replica::never;
  for (const RequestTimes& times : replay.times) origin = std::min(origin, times.arrival);
  TraceWriter writer{origin};
  writer.name(0, "requests");
  for (std::uint32_t replica = 0; replica < replay.replayed; ++replica)
    writer.name(replica + 1, !run.pools          ? "replica " + std::to_string(replica)
                             : replica < prefill ? "prefill " + std::to_string(replica)
                                                 : "decode " + std::to_string(replica - prefill));
  for (const ReplayedIteration& iteration : iterations) writer.iteration(iteration);
  for (const RequestTimes& times : replay.times)
    writer.request(times, run.pools ? &run.pools->times[times.request] : nullptr);
  return writer.text();
}

}  // namespace orrery
