#include "sim/explorer/memory_view.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sim/explorer/json_line.hpp"
#include "sim/training/memory_over_time.hpp"
#include "sim/training/trace_slices.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

std::int64_t whole(Bytes bytes) { return std::llround(bytes.si()); }
std::int64_t nanoseconds(Ticks time) { return std::llround(time.seconds().si() * 1e9); }

// All, or one a stage; of more stages than can be shown some, spread over them.
std::vector<int> chosen_roles(const Cast& cast, std::size_t most) {
  std::vector<int> all(cast.roles().size());
  std::iota(all.begin(), all.end(), 0);
  sort_by_place(all, cast);
  if (all.size() <= most) return all;
  const auto stage = [&](int role) {
    return cast.roles()[static_cast<std::size_t>(role)].at.stage;
  };
  all.erase(std::unique(all.begin(), all.end(), [&](int a, int b) { return stage(a) == stage(b); }),
            all.end());
  const std::size_t every = (all.size() + most - 1) / most;
  std::vector<int> some;
  for (std::size_t i = 0; i < all.size(); i += every) some.push_back(all[i]);
  return some;
}

Json curve_json(const ActivationsOverTime& over) {
  Json time = Json::array(), kept = Json::array(), working = Json::array(), held = Json::array();
  const bool works = std::any_of(over.curve.begin(), over.curve.end(),
                                 [](const MemoryMoment& at) { return at.working > Bytes{}; });
  for (const MemoryMoment& moment : over.curve) {
    time.push_back(nanoseconds(moment.time));
    kept.push_back(whole(moment.kept));
    if (works) working.push_back(whole(moment.working));
  }
  for (const HeldActivations& one : over.held) {
    for (const int number : {one.microbatch, one.chunk}) held.push_back(number);
    for (const Ticks edge : {one.taken.start, one.taken.finish, one.given.start, one.given.finish})
      held.push_back(nanoseconds(edge));
    held.push_back(whole(one.bytes));
  }
  return {{"time_ns", std::move(time)},
          {"kept_bytes", std::move(kept)},
          {"working_bytes", std::move(working)},
          {"held", std::move(held)}};
}

}  // namespace

std::string memory_view(const Estimate& answer, const RoutedLoads& loads, std::size_t most_ranks) {
  const Result& result = answer.result;
  const Cast& cast = answer.step.cast;
  Json ranks = Json::array();
  for (const ActivationsOverTime& over : activations_over_time(
           answer.step, answer.timeline, result.scenario.plan,
           activation_parts(result.scenario, loads), chosen_roles(cast, most_ranks))) {
    const Role& role = cast.roles()[static_cast<std::size_t>(over.role)];
    const StageMemory& stage = result.memory.stages[static_cast<std::size_t>(role.at.stage)];
    const MemoryMoment& peak = over.peak();
    Json rank{{"rank", role.rank.value},
              {"stage", role.at.stage},
              {"ranks", role.ranks},
              {"weights_bytes", whole(stage.weights)},
              {"gradients_bytes", whole(stage.gradients)},
              {"optimizer_bytes", whole(stage.optimizer)},
              {"other_bytes", whole(stage.other)},
              {"peak_bytes", whole(stage.peak() - stage.activations + peak.sum())},
              {"peak_ns", nanoseconds(peak.time)},
              {"counted_bytes", whole(stage.peak())}};
    rank.update(curve_json(over));
    ranks.push_back(std::move(rank));
  }
  return line_of(Json{{"step_ns", nanoseconds(answer.timeline.makespan)},
                      {"capacity_bytes", whole(result.memory.capacity)},
                      {"simulated", result.roles},
                      {"ranks", std::move(ranks)}});
}

}  // namespace orrery
