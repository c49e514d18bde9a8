#pragma once

#include <cstdint>
#include <vector>

#include "sim/cluster/rank_groups.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Frozen parameters on a rank: those of linear layers, dense and of routed experts, and all others
/// (tables, norms, vectors), which keep 16 bits.
struct FrozenParameters {
  std::int64_t dense = 0, experts = 0, others = 0;

  std::int64_t sum() const { return dense + experts + others; }
  FrozenParameters& operator+=(const FrozenParameters& other) {
    dense += other.dense;
    experts += other.experts;
    others += other.others;
    return *this;
  }
  bool operator==(const FrozenParameters&) const = default;
};

/// Parameters on a rank, by the group that holds copies of them. Those that are trained have
/// gradients and the optimizer's state.
struct RankParameters {
  std::int64_t dense = 0;    ///< Copied over the data-parallel group: all but routed experts.
  std::int64_t experts = 0;  ///< Copied over the expert-data-parallel group.
  FrozenParameters frozen = {};

  std::int64_t of(GroupKind copies) const {
    return copies == GroupKind::expert_data ? experts : dense;
  }
  std::int64_t sum() const { return dense + experts; }  ///< Trained ones.
  std::int64_t held() const { return sum() + frozen.sum(); }
  RankParameters& operator+=(const RankParameters& other) {
    dense += other.dense;
    experts += other.experts;
    frozen += other.frozen;
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

/// What is gathered of sharded weights, as if all of it were trained: a frozen parameter counts as
/// the part of a trained one whose bytes it has.
RankParameters gathered(const Scenario& scenario, const RankParameters& held);

/// Number of weight tensors of layers without experts, embedding and head of a virtual stage: a
/// layer has four products, or as many as the software makes of them, and two norms.
int weight_tensors(const Scenario& scenario, int virtual_stage);

/// The same, part by part.
struct StageParts {
  RankParameters embedding;
  std::vector<RankParameters> layers;  ///< Listed in forward order.
  RankParameters prediction;           ///< All prediction layers.
  RankParameters head;                 ///< Includes the final norm.
};
StageParts parts_on_rank(const Scenario& scenario, int virtual_stage);

}  // namespace orrery
