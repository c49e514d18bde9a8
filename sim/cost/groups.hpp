#pragma once

#include "sim/cost/collective_cost.hpp"

namespace orrery {

/// Ranks of one pipeline stage that communicate with each other.
enum class GroupKind {
  tensor,   ///< Share the heads and channels of a layer.
  context,  ///< Share each sequence.
  data,     ///< Hold copies of the same parameters: all replicas with their context ranks.
};
inline constexpr GroupKind all_group_kinds[] = {GroupKind::tensor, GroupKind::context,
                                                GroupKind::data};
inline constexpr int group_kinds = 3;

/// How the plan's groups lie in the system (graph/placement.hpp knows).
struct GroupShapes {
  GroupShape tensor;
  GroupShape data;
  GroupShape model;  ///< All stages and tensor ranks of one replica.
  GroupShape context{};

  GroupShape& operator[](GroupKind kind) {
    switch (kind) {
      case GroupKind::tensor:
        return tensor;
      case GroupKind::context:
        return context;
      case GroupKind::data:
        break;
    }
    return data;
  }
  const GroupShape& operator[](GroupKind kind) const {
    return const_cast<GroupShapes&>(*this)[kind];
  }
};

/// A collective and the group that does it.
struct GroupCollective {
  CollectiveCost cost;
  GroupKind group = GroupKind::tensor;

  Seconds time() const { return cost.time(); }
};

}  // namespace orrery
