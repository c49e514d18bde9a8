#include "sim/explorer/experts_view.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "sim/core/index.hpp"
#include "sim/explorer/json_line.hpp"

namespace orrery {
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

}  // namespace orrery
