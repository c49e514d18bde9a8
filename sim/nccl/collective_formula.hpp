#pragma once

#include <optional>

#include "sim/cluster/rank_groups.hpp"
#include "sim/cluster/system.hpp"
#include "sim/measurements/collective_constants.hpp"
#include "sim/nccl/nccl_algorithm.hpp"
#include "sim/nccl/nccl_tuner.hpp"

namespace orrery {

/// Rounds of a ring of `n` ranks: n - 1, and twice that for an all-reduce, which is a
/// reduce-scatter and an all-gather.
int ring_rounds(CollectiveKind kind, int n);

/// Directed rings that share no NVLink direction, through the first `n` GPUs of a DGX-1 V100. Five
/// have none: the fifth GPU hangs on one other by two links, which pass the rings on and back.
int mesh_rings(int n);

/// Levels of a binary tree over so many domains.
int tree_depth(int domains);

/// Uncontended times by formula, with the constants of the system's GPU
/// (docs/explanation/collectives.md).
class CollectiveModel {
 public:
  /// `alone`: no other group sends over the NICs of its members' nodes. In a training step all do.
  explicit CollectiveModel(const System& system, bool alone = false);

  /// The fastest of the algorithms that apply, named by `algorithm`. `group` has two ranks or more,
  /// `tensor` some bytes.
  CollectiveCost operator()(CollectiveKind kind, Bytes tensor, GroupShape group) const;

  /// One rank sends `bytes` to another, inside a domain or over the network.
  CollectiveCost send(Bytes bytes, bool same_domain) const;

  // The parts of algorithms' costs.

  const System& system() const { return system_; }
  const CollectiveConstants& constants() const { return constants_; }
  /// NVLink (or PCIe) rate of a GPU that the constants' efficiencies refer to.
  BytesPerSecond nvlink() const { return nvlink_; }
  /// One GPU's payload rate over its NICs, while the `members` of its group in its domain send, or
  /// all GPUs of the domain unless the collective is alone.
  BytesPerSecond nic(int members) const {
    return system_.network_efficiency *
           system_.network_rate(alone_ ? members : system_.nvlink_domain);
  }
  /// The same for rings and trees, whose channels leave a domain by few of its NICs.
  BytesPerSecond leaving(int members) const;
  /// Its domains are racks, and not nodes of eight.
  static bool larger_than_a_node(GroupShape group) { return group.per_domain > 8; }
  /// One round of a ring inside a domain, and one hop between domains.
  Seconds hop() const;
  /// `a_nic`: the bytes that each NIC sends.
  Seconds network_hop(GroupShape group, Bytes a_nic) const;
  /// All rounds of a ring; a chain inside each domain and a tree over the domains, up and down, and
  /// the tree alone.
  Seconds ring_steps(const CollectiveCall& call) const;
  Seconds tree_steps(const CollectiveCall& call) const;
  Seconds tree_latency(const CollectiveCall& call) const;
  /// What the first chunk of a tree over domains takes before the rest follows, which passes all
  /// bytes on in `moving`.
  Seconds climbing(const CollectiveCall& call, Seconds moving) const;
  /// A cost without bytes, tagged by the provenance of the constants.
  CollectiveCost priced() const;
  /// The cost of a ring's rounds, `steps` being their latency.
  CollectiveCost ring(const CollectiveCall& call, Seconds steps) const;
  const NcclTuner& tuner() const { return tuner_; }
  /// NVSwitches reduce for the members of a domain, and the constants have their rate.
  bool reduces_in_nvswitch(GroupShape group) const;

 private:
  CollectiveCost all_to_all(Bytes tensor, GroupShape group) const;
  CollectiveCost send_recv(Bytes tensor, GroupShape group) const;
  BytesPerSecond link(int ranks_in_domain) const;

  System system_;
  bool alone_ = false;
  CollectiveConstants constants_;
  BytesPerSecond nvlink_;
  NcclTuner tuner_;
};

}  // namespace orrery
