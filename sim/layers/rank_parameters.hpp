#pragma once

#include <cstdint>
#include <vector>

#include "sim/cluster/rank_groups.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Parameters on a rank, by the group that holds copies of them.
struct RankParameters {
  std::int64_t dense = 0;    ///< Copied over the data-parallel group: all but routed experts.
  std::int64_t experts = 0;  ///< Copied over the expert-data-parallel group.

  std::int64_t of(GroupKind copies) const {
    return copies == GroupKind::expert_data ? experts : dense;
  }
  std::int64_t sum() const { return dense + experts; }
  RankParameters& operator+=(const RankParameters& other) {
    dense += other.dense;
    experts += other.experts;
    return *this;
  }
  bool operator==(const RankParameters&) const = default;
};

/// Parameters of one rank of virtual stage `stage`: its layers' share of tp (for routed experts, ep
/// and etp), embedding and head on their stages, and the last stage's prediction layers. Biases,
/// norms, routers and the down-projections of latent attention are not split.
RankParameters parameters_on_rank(const Scenario& scenario, int virtual_stage);
/// The same for every virtual stage.
std::vector<RankParameters> parameters_by_stage(const Scenario& scenario);

/// Number of weight tensors of layers without experts, embedding and head of a virtual stage: a
/// layer has four products, or as many as the software makes of them, and two norms.
int weight_tensors(const Scenario& scenario, int virtual_stage);

/// The same, part by part.
struct StageParts {
  std::int64_t embedding = 0;
  std::vector<RankParameters> layers;  ///< Listed in forward order.
  RankParameters prediction;           ///< All prediction layers.
  std::int64_t head = 0;               ///< Includes the final norm.
};
StageParts parts_on_rank(const Scenario& scenario, int virtual_stage);

}  // namespace orrery
