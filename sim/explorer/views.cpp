#include "sim/explorer/views.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sim/core/units.hpp"
#include "sim/training/memory_over_time.hpp"
#include "sim/training/trace_slices.hpp"

namespace orrery {

std::string line_of(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<double>;

// Four places are more than a drawing shows, and half as many bytes as all.
Json rounded(const Row& row) {
  Json list = Json::array();
  for (const double value : row) list.push_back(std::round(value * 1e4) / 1e4);
  return list;
}

struct LayerLoads {
  Row of_expert, of_rank, most_of_rank;
};

LayerLoads layer_loads(const RoutedLoads& loads, int layer) {
  const RoutingShape& shape = loads.shape();
  const double mean = static_cast<double>(shape.tokens * shape.experts.per_token);
  const int batches = loads.groups() * loads.micro_batches();
  LayerLoads sums{Row(static_cast<std::size_t>(shape.experts.count)), Row(at(shape.ranks)),
                  Row(at(shape.ranks))};
  for (int group = 0; group < loads.groups(); ++group)
    for (int m = 0; m < loads.micro_batches(); ++m) {
      const RoutedBatch& batch = loads.batch(group, m, layer);
      for (std::size_t slot = 0; slot < batch.kept.size(); ++slot)
        sums.of_expert[at(loads.expert_of(layer, slot))] += static_cast<double>(batch.kept[slot]);
      for (int rank = 0; rank < shape.ranks; ++rank) {
        const auto own = batch.computed_by(rank);
        const auto rows =
            static_cast<double>(std::accumulate(own.begin(), own.end(), std::int64_t{0}));
        sums.of_rank[at(rank)] += rows / mean / batches;
        sums.most_of_rank[at(rank)] = std::max(sums.most_of_rank[at(rank)], rows / mean);
      }
    }
  const double sum = std::accumulate(sums.of_expert.begin(), sums.of_expert.end(), 0.0);
  for (double& copies : sums.of_expert)
    if (sum > 0.0) copies *= static_cast<double>(shape.experts.count) / sum;
  return sums;
}

}  // namespace

std::string experts_view(const Scenario& scenario, const RoutedLoads& loads) {
  if (!scenario.model.experts)
    return R"({"experts": 0})"
           "\n";
  const RoutingShape& shape = loads.shape();
  Json layers = Json::array();
  for (int layer = 0; layer < scenario.model.layers; ++layer)
    if (scenario.kind_of(layer).has_experts) layers.push_back(layer);
  Json experts = Json::array(), ranks = Json::array(), fullest = Json::array();
  for (int layer = 0; !loads.even() && layer < loads.layers(); ++layer) {
    const LayerLoads of = layer_loads(loads, layer);
    experts.push_back(rounded(of.of_expert));
    ranks.push_back(rounded(of.of_rank));
    fullest.push_back(rounded(of.most_of_rank));
  }
  return line_of(Json{{"experts", shape.experts.count},
                      {"per_token", shape.experts.per_token},
                      {"even", loads.even()},
                      {"routing", scenario.plan.routing},
                      {"layers", std::move(layers)},
                      {"ranks", shape.ranks},
                      {"micro_batches", loads.micro_batches()},
                      {"groups", loads.groups()},
                      {"mean_rows", shape.tokens * shape.experts.per_token},
                      {"expert_over_mean", std::move(experts)},
                      {"rank_over_mean", std::move(ranks)},
                      {"rank_most_over_mean", std::move(fullest)}});
}

namespace {

using Json = nlohmann::ordered_json;

std::int64_t whole(Bytes bytes) { return std::llround(bytes.si()); }
std::int64_t nanoseconds(Ticks time) { return std::llround(time.seconds().si() * 1e9); }

// All, or one a stage; of more stages than can be shown some, spread over them.
std::vector<int> chosen_reps(const RankClasses& classes, std::size_t most) {
  std::vector<int> all(classes.reps().size());
  std::iota(all.begin(), all.end(), 0);
  sort_by_place(all, classes);
  if (all.size() <= most) return all;
  const auto stage = [&](int rep) {
    return classes.reps()[static_cast<std::size_t>(rep)].at.stage;
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
  const RankClasses& classes = answer.step.classes;
  Json ranks = Json::array();
  for (const ActivationsOverTime& over : activations_over_time(
           answer.step, answer.timeline, result.scenario.plan,
           activation_parts(result.scenario, loads), chosen_reps(classes, most_ranks))) {
    const RankClass& rep = classes.reps()[static_cast<std::size_t>(over.rep)];
    const StageMemory& stage = result.memory.stages[static_cast<std::size_t>(rep.at.stage)];
    const MemoryMoment& peak = over.peak();
    Json rank{{"rank", rep.rank.value},
              {"stage", rep.at.stage},
              {"ranks", rep.ranks},
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
                      {"simulated", result.reps},
                      {"ranks", std::move(ranks)}});
}

}  // namespace orrery
