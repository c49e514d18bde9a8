#pragma once

#include "sim/cost/collective_cost.hpp"
#include "sim/cost/op.hpp"
#include "sim/input/collective_constants.hpp"
#include "sim/input/system.hpp"

namespace orrery {

/// What each rank puts on the wire, per byte of the tensor: nccl-tests' factor between algorithm
/// and bus bandwidth (nccl-tests doc/PERFORMANCE.md). `n` >= 2.
double wire_share(CollectiveKind kind, int n);

/// Rounds of a ring of `n` ranks: n - 1, and twice that for an all-reduce, which is a
/// reduce-scatter and an all-gather.
int ring_rounds(CollectiveKind kind, int n);

/// Directed rings that share no NVLink direction, through the first `n` GPUs of a DGX-1 V100. Five
/// have none: the fifth GPU hangs on one other by two links, which pass the rings on and back.
int mesh_rings(int n);

/// Uncontended times by formula, with the constants of the system's GPU (docs/COLLECTIVES.md).
class CollectiveModel {
 public:
  explicit CollectiveModel(const System& system);

  /// The faster of the algorithms that apply; `algorithm` says which. `group` has two ranks or
  /// more, `tensor` some bytes.
  CollectiveCost operator()(CollectiveKind kind, Bytes tensor, GroupShape group) const;

  /// One rank sends `bytes` to another, inside a domain or over the network.
  CollectiveCost send(Bytes bytes, bool same_domain) const;

  const CollectiveConstants& constants() const { return constants_; }
  /// One GPU's share of the NICs, payload.
  BytesPerSecond nic() const { return nic_; }

 private:
  CollectiveCost ring(CollectiveKind kind, Bytes tensor, GroupShape group) const;
  CollectiveCost nvls(Bytes tensor, int ranks) const;
  CollectiveCost nvls_tree(Bytes tensor, GroupShape group) const;
  CollectiveCost all_to_all(Bytes tensor, GroupShape group) const;
  CollectiveCost send_recv(Bytes tensor, GroupShape group) const;
  CollectiveCost priced() const;  ///< Without bytes, tagged by what the constants rest on.

  BytesPerSecond link(int ranks_in_domain) const;
  Seconds hop() const;
  Seconds tree_latency(int domains) const;

  System system_;
  CollectiveConstants constants_;
  BytesPerSecond nvlink_;  ///< NVLink (or PCIe) rate that the efficiencies refer to.
  BytesPerSecond nic_;
};

}  // namespace orrery
