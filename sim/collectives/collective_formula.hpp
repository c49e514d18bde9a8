#pragma once

#include <optional>

#include "sim/cluster/rank_groups.hpp"
#include "sim/cluster/system.hpp"
#include "sim/collectives/collective_cost.hpp"
#include "sim/measurements/collective_constants.hpp"

namespace orrery {

/// Rounds of a ring of `n` ranks: n - 1, and twice that for an all-reduce, which is a
/// reduce-scatter and an all-gather.
int ring_rounds(CollectiveKind kind, int n);

/// Directed rings that share no NVLink direction, through the first `n` GPUs of a DGX-1 V100. Five
/// have none: the fifth GPU hangs on one other by two links, which pass the rings on and back.
int mesh_rings(int n);

/// Uncontended times by formula, with the constants of the system's GPU
/// (docs/explanation/collectives.md).
class CollectiveModel {
 public:
  explicit CollectiveModel(const System& system);

  /// The faster of the algorithms that apply; `algorithm` says which. `group` has two ranks or
  /// more, `tensor` some bytes.
  CollectiveCost operator()(CollectiveKind kind, Bytes tensor, GroupShape group) const;

  /// By this algorithm, in its fastest protocol; nothing where it does not apply or no formula
  /// knows it (PAT, CollNet's chain, NVLS other than all-reduces).
  std::optional<CollectiveCost> by(NcclAlgorithm algorithm, CollectiveKind kind, Bytes tensor,
                                   GroupShape group) const;

  /// One rank sends `bytes` to another, inside a domain or over the network.
  CollectiveCost send(Bytes bytes, bool same_domain) const;

  const CollectiveConstants& constants() const { return constants_; }
  /// One round of a ring inside a domain.
  Seconds hop() const;
  /// One GPU's share of the NICs, payload.
  BytesPerSecond nic() const { return nic_; }

 private:
  Seconds ring_steps(CollectiveKind kind, GroupShape group) const;
  Seconds tree_steps(GroupShape group) const;
  CollectiveCost ring(CollectiveKind kind, Bytes tensor, GroupShape group, Seconds steps) const;
  bool reduces_in_nvswitch(GroupShape group) const;
  CollectiveCost nvls(Bytes tensor, int ranks) const;
  CollectiveCost nvls_tree(Bytes tensor, GroupShape group) const;
  CollectiveCost collnet(Bytes tensor, GroupShape group) const;
  CollectiveCost all_to_all(Bytes tensor, GroupShape group) const;
  CollectiveCost send_recv(Bytes tensor, GroupShape group) const;
  CollectiveCost priced() const;  ///< Without bytes, tagged by what the constants rest on.

  BytesPerSecond link(int ranks_in_domain) const;
  Seconds network_hop(GroupShape group) const;
  Seconds tree_latency(GroupShape group) const;

  System system_;
  CollectiveConstants constants_;
  BytesPerSecond nvlink_;  ///< NVLink (or PCIe) rate that the efficiencies refer to.
  BytesPerSecond nic_;
};

}  // namespace orrery
