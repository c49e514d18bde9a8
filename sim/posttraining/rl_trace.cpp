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
    const int generates = job.colocated ? trainer : engine;
    for (const PoolTime& one : pool_times(step_)) {
      const int pool = one.of_engine ? engine : trainer;
      slice(pool, one.phase ? phase_text(*one.phase) : wait_text(pool), one.begin, one.time);
      if (one.phase == RlPhase::generation && pool == generates && !step_.overlap)
        samples(pool, one.begin);
    }
    return Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events_)}}.dump() + "\n";
  }

 private:
  std::string wait_text(int pool) const {
    if (!step_.overlap) return "waits";
    return pool == trainer ? "waits for samples" : "waits for the trainer";
  }

  // How many samples run, and the last ones: the tail of the rollout.
  void samples(int pool, Seconds begin) {
    for (const auto& [at, running] : running_samples(step_.rollout, most_points))
      events_.push_back({{"ph", "C"},
                         {"pid", pool},
                         {"name", "running samples"},
                         {"ts", microseconds(begin + at)},
                         {"args", {{"samples", running}}}});
    std::vector<RequestTimes> times = step_.rollout.run.replay.times;
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

// Pools that take turns wait for each other.
void add_in_turn(const RlStep& step, std::vector<PoolTime>& trainer,
                 std::vector<PoolTime>& engine) {
  Seconds begin;
  for (const RlPhaseTime& one : step.phases) {
    const bool generates = one.phase == RlPhase::generation;
    const auto phase_if = [&](bool works) {
      return works ? std::optional{one.phase} : std::nullopt;
    };
    trainer.push_back({false, phase_if(step.job.colocated || !generates), begin, one.time});
    if (!step.job.colocated)
      engine.push_back({true, phase_if(generates || one.phase == RlPhase::refit), begin, one.time});
    begin += one.time;
  }
}

void add_at_a_time(const RlStep& step, Seconds first, std::vector<PoolTime>& trainer,
                   std::vector<PoolTime>& engine) {
  Seconds begin = first;
  for (const RlPhaseTime& one : step.phases) {
    const bool waits = one.phase == RlPhase::generation;
    trainer.push_back({false, waits ? std::nullopt : std::optional{one.phase}, begin, one.time});
    begin += one.time;
  }
  const Seconds stops =
      step.job.request.in_flight_updates ? Seconds{} : step.time_of(RlPhase::refit);
  const Seconds generates = std::min(step.overlap->generation.time, step.time - stops);
  engine.push_back({true, RlPhase::generation, first, generates});
  engine.push_back({true, std::nullopt, first + generates, step.time - stops - generates});
  engine.push_back({true, RlPhase::refit, first + step.time - stops, stops});
}

}  // namespace

std::vector<PoolTime> pool_times(const RlStep& step) {
  std::vector<PoolTime> trainer, engine;
  if (!step.overlap) add_in_turn(step, trainer, engine);
  constexpr int shown = 3;
  for (int i = 0; step.overlap && i < shown; ++i)
    add_at_a_time(step, static_cast<double>(i) * step.time, trainer, engine);
  trainer.insert(trainer.end(), engine.begin(), engine.end());
  std::erase_if(trainer, [](const PoolTime& one) { return one.time <= Seconds{}; });
  return trainer;
}

std::vector<std::pair<Seconds, std::int64_t>> running_samples(const Rollout& rollout,
                                                              std::size_t most) {
  std::vector<std::pair<Seconds, int>> changes;
  for (const RequestTimes& one : rollout.run.replay.times) {
    changes.emplace_back(one.arrival + one.queue, 1);
    changes.emplace_back(one.arrival + one.e2e, -1);
  }
  std::sort(changes.begin(), changes.end());
  const std::size_t every = changes.size() / most + 1;
  std::vector<std::pair<Seconds, std::int64_t>> curve;
  std::int64_t running = 0;
  std::size_t next = 0;  // The first moment is always there: most samples begin with it.
  for (std::size_t i = 0; i < changes.size(); ++i) {
    running += changes[i].second;
    const bool is_last = i + 1 == changes.size();
    const bool last_of_moment = is_last || changes[i + 1].first > changes[i].first;
    if (!last_of_moment || (i < next && !is_last)) continue;
    curve.emplace_back(changes[i].first, running);
    next = i + every;
  }
  return curve;
}

std::string rl_trace(const RlStep& step) { return TraceMaker{step}.text(); }

}  // namespace orrery
