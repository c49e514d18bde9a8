#pragma once

#include <array>
#include <vector>

#include "sim/plan/placement.hpp"

namespace orrery {

/// Kinds of traffic between ranks in a step. Collectives use rings, inside NVLink domains and
/// between them, and come first, in the order of GroupKind.
enum class Traffic {
  tensor_inside,
  tensor_outside,
  context_inside,
  context_outside,
  data_inside,
  data_outside,
  expert_tensor_inside,
  expert_tensor_outside,
  expert_inside,
  expert_outside,
  expert_data_inside,
  expert_data_outside,
  shard_copies_inside,
  shard_copies_outside,
  forward,   ///< Activations to the next stage.
  backward,  ///< Their gradients to the stage before.
  tied,      ///< Gradients of a tied embedding's two copies.
  mirror,    ///< Sums over the two copies of a stage, if micro-batches enter at both ends.
};
inline constexpr int traffic_kinds = 2 * group_kinds + 4;

/// A group's traffic inside domains or between them.
inline Traffic traffic(GroupKind kind, bool inside) {
  return static_cast<Traffic>(2 * static_cast<int>(kind) + (inside ? 0 : 1));
}

/// Traffic from one rank to another. A rank has at most one flow of a kind.
struct RankFlow {
  Traffic kind = Traffic::forward;
  Rank from;
  Rank to;
  int group = -1;  ///< Index of the collective's group in groups_of(); -1: two ranks only.
};

/// Ranks that wait for each other in collectives.
struct Group {
  GroupKind kind = GroupKind::tensor;
  std::vector<Rank> ranks;
};

/// Every group of several ranks.
std::vector<Group> groups_of(const Placement& placement);

/// Everything that any plan with this placement can send, each flow once.
std::vector<RankFlow> traffic_of(const Placement& placement);

}  // namespace orrery
