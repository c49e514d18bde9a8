#pragma once

#include "sim/cost/collective_cost.hpp"

namespace orrery {

/// Ranks of one pipeline stage that communicate with each other. Attention and dense layers lie
/// over tensor x context x data ranks, experts over expert-tensor x expert x expert-data ranks of
/// the same stage (Megatron Core's parallel folding, arXiv 2504.14960).
enum class GroupKind {
  tensor,         ///< Share the heads and channels of a layer.
  context,        ///< Share each sequence.
  data,           ///< Hold copies of the same parameters: all replicas with their context ranks.
  expert_tensor,  ///< Share the channels of an expert.
  expert,         ///< Hold different experts, and send each other tokens.
  expert_data,    ///< Hold copies of the same experts.
};
inline constexpr GroupKind all_group_kinds[] = {GroupKind::tensor, GroupKind::context,
                                                GroupKind::data,   GroupKind::expert_tensor,
                                                GroupKind::expert, GroupKind::expert_data};
inline constexpr int group_kinds = 6;
/// Whether their collectives lie inside passes; the others bring gradients and weights.
constexpr bool is_inside_passes(GroupKind kind) {
  return kind != GroupKind::data && kind != GroupKind::expert_data;
}

/// How the plan's groups lie in the system (graph/placement.hpp knows).
struct GroupShapes {
  GroupShape tensor;
  GroupShape data;
  GroupShape model;  ///< All stages and tensor ranks of one replica.
  GroupShape context{};
  GroupShape expert_tensor{};
  GroupShape expert{};
  GroupShape expert_data{};

  GroupShape& operator[](GroupKind kind) {
    switch (kind) {
      case GroupKind::tensor:
        return tensor;
      case GroupKind::context:
        return context;
      case GroupKind::data:
        return data;
      case GroupKind::expert_tensor:
        return expert_tensor;
      case GroupKind::expert:
        return expert;
      case GroupKind::expert_data:
        break;
    }
    return expert_data;
  }
  const GroupShape& operator[](GroupKind kind) const {
    return const_cast<GroupShapes&>(*this)[kind];
  }
};

/// A collective and the group that does it.
struct GroupCollective {
  CollectiveCost cost;
  GroupKind group = GroupKind::tensor;
  bool combine = false;  ///< Of an expert group: brings tokens back; else takes them there.
  /// Share of each GPU's multiprocessors that it occupies, times what a record says they count
  /// (KernelModel::share_lost_beside): kernels beside it have the rest.
  double taken = 0.0;
  /// Share of what copies reach of its memory's bandwidth that it takes from kernels that stream.
  double taken_memory = 0.0;

  Seconds time() const { return cost.time(); }
};

}  // namespace orrery
