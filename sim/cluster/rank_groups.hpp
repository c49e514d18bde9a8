#pragma once

#include "sim/core/units.hpp"

namespace orrery {

/// Ranks of one pipeline stage that communicate with each other. Attention and dense layers lie
/// over tensor x context x data ranks, experts over expert-tensor x expert x expert-data ranks of
/// the same stage (Megatron Core's parallel folding, arXiv 2504.14960).
enum class GroupKind {
  tensor,         ///< Share the heads and channels of a layer.
  context,        ///< Share each sequence.
  data,           ///< Hold, or share by ZeRO, a copy of the same parameters: replicas with their
                  ///< context ranks, all of them unless shards are kept in several copies.
  expert_tensor,  ///< Share the channels of an expert.
  expert,         ///< Hold different experts, and send each other tokens.
  expert_data,    ///< The same of experts.
  shard_copies,   ///< Hold the same shard of parameters, dense ones and experts.
};
inline constexpr GroupKind all_group_kinds[] = {
    GroupKind::tensor, GroupKind::context,     GroupKind::data,        GroupKind::expert_tensor,
    GroupKind::expert, GroupKind::expert_data, GroupKind::shard_copies};
inline constexpr int group_kinds = 7;
/// True if their collectives lie inside passes; the others carry gradients and weights.
constexpr bool is_inside_passes(GroupKind kind) {
  return kind != GroupKind::data && kind != GroupKind::expert_data &&
         kind != GroupKind::shard_copies;
}

/// The size of a group: ranks, NVLink domains, and ranks in the domain with the fewest of them.
struct GroupShape {
  int ranks = 1;
  int domains = 1;
  int per_domain = 1;
  /// Latency of a hop between two domains beyond System::network_latency: the fabric's switches
  /// after the first, as far apart as this group lies.
  Seconds further_switches{};
  /// Rate of the NVLinks that join the group's two GPUs in a node where others are reached over
  /// PCIe; 0: none.
  BytesPerSecond bridge{};
  bool operator==(const GroupShape&) const = default;
};

/// Sizes of the plan's groups in the system (Placement::shapes).
struct GroupShapes {
  GroupShape tensor;
  GroupShape data;
  GroupShape model;  ///< All stages and tensor ranks of one replica.
  GroupShape context{};
  GroupShape expert_tensor{};
  GroupShape expert{};
  GroupShape expert_data{};
  GroupShape shard_copies{};

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
        return expert_data;
      case GroupKind::shard_copies:
        break;
    }
    return shard_copies;
  }
  const GroupShape& operator[](GroupKind kind) const {
    return const_cast<GroupShapes&>(*this)[kind];
  }
};

}  // namespace orrery
