#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/core/number_text.hpp"
#include "sim/posttraining/rl_text.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

constexpr int trainer = 1, engine = 2;      // Processes.
constexpr std::size_t last_samples = 32;    // The number of samples drawn one by one.
constexpr std::size_t most_points = 2'000;  // The longest curve of running samples.

double microseconds(Seconds time) { return std::round(time.si() * 1e9) / 1e3; }

class TraceMaker {
 public:
  explicit TraceMaker(const RlStep& step) : step_{step} {}

  std::string text() {
    const RlJob& job = step_.job;
    if (job.colocated) {
      name(trainer, "all " + plural(job.gpus, "GPU"));
    } else {
      name(trainer, "training, " + plural(job.train_gpus, "GPU"));
      name(engine, "rollout, " + plural(job.rollout_gpus, "GPU"));
    }
    if (step_.overlap)
      at_a_time();
    else
      in_turn();
    return Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events_)}}.dump() + "\n";
  }

 private:
  // The pools of a loop whose halves take turns wait for each other.
  void in_turn() {
    Seconds begin;
    for (const RlPhaseTime& phase : step_.phases) {
      const bool generates = phase.phase == RlPhase::generation;
      const bool both = phase.phase == RlPhase::refit;
      const auto draw = [&](int pool, bool works) {
        slice(pool, works ? phase_text(phase.phase) : "waits", begin, phase.time);
      };
      draw(trainer, step_.job.colocated || !generates);
      if (!step_.job.colocated) draw(engine, generates || both);
      if (generates) samples(begin);
      begin += phase.time;
    }
  }

  void at_a_time() {
    constexpr int steps = 3;
    const Seconds refit = step_.time_of(RlPhase::refit);
    Seconds begin;
    for (int i = 0; i < steps; ++i) {
      Seconds at = begin;
      for (const RlPhaseTime& phase : step_.phases) {
        const bool waits = phase.phase == RlPhase::generation;
        slice(trainer, waits ? "waits for samples" : phase_text(phase.phase), at, phase.time);
        at += phase.time;
      }
      const Seconds stops = step_.job.request.in_flight_updates ? Seconds{} : refit;
      const Seconds generates = std::min(step_.overlap->generation.time, step_.time - stops);
      slice(engine, phase_text(RlPhase::generation), begin, generates);
      slice(engine, "waits for the trainer", begin + generates, step_.time - stops - generates);
      slice(engine, phase_text(RlPhase::refit), begin + step_.time - stops, stops);
      begin += step_.time;
    }
  }

  // How many samples run, and the last ones: the tail of the rollout.
  void samples(Seconds begin) {
    const int pool = step_.job.colocated ? trainer : engine;
    std::vector<RequestTimes> times = step_.rollout.run.replay.times;
    std::vector<std::pair<double, int>> changes;
    for (const RequestTimes& one : times) {
      changes.emplace_back((one.arrival + one.queue).si(), 1);
      changes.emplace_back((one.arrival + one.e2e).si(), -1);
    }
    std::sort(changes.begin(), changes.end());
    const std::size_t every = changes.size() / most_points + 1;
    std::int64_t running = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      running += changes[i].second;
      const bool last_of_moment =
          i + 1 == changes.size() || changes[i + 1].first > changes[i].first;
      if (last_of_moment && (i % every == 0 || i + 1 == changes.size()))
        events_.push_back({{"ph", "C"},
                           {"pid", pool},
                           {"name", "running samples"},
                           {"ts", microseconds(begin + Seconds{changes[i].first})},
                           {"args", {{"samples", running}}}});
    }
    const auto end = [](const RequestTimes& one) { return one.arrival + one.e2e; };
    std::stable_sort(times.begin(), times.end(),
                     [&](const RequestTimes& a, const RequestTimes& b) { return end(a) > end(b); });
    if (times.size() > last_samples) times.resize(last_samples);
    for (const RequestTimes& one : times) {
      const std::string id = "sample " + std::to_string(one.request);
      span(pool, id, "wait", begin + one.arrival, begin + one.arrival + one.queue);
      span(pool, id, "prompt", begin + one.arrival + one.queue, begin + one.arrival + one.ttft);
      span(pool, id, "answer", begin + one.arrival + one.ttft, begin + end(one));
    }
  }

  void name(int pool, const std::string& text) {
    events_.push_back(
        {{"ph", "M"}, {"pid", pool}, {"name", "process_name"}, {"args", {{"name", text}}}});
  }

  void slice(int pool, const std::string& text, Seconds begin, Seconds time) {
    if (time <= Seconds{}) return;
    events_.push_back({{"ph", "X"},
                       {"pid", pool},
                       {"tid", 0},
                       {"name", text},
                       {"ts", microseconds(begin)},
                       {"dur", microseconds(time)}});
  }

  void span(int pool, const std::string& id, const char* text, Seconds begin, Seconds end) {
    if (end <= begin) return;
    for (const auto& [phase, at] : {std::pair{"b", begin}, std::pair{"e", end}})
      events_.push_back({{"ph", phase},
                         {"cat", "samples"},
                         {"id", id},
                         {"pid", pool},
                         {"name", text},
                         {"ts", microseconds(at)}});
  }

  const RlStep& step_;
  Json events_ = Json::array();
};

}  // namespace

std::string rl_trace(const RlStep& step) { return TraceMaker{step}.text(); }

}  // namespace orrery
