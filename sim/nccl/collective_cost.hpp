#pragma once

#include <algorithm>
#include <string_view>

#include "sim/cluster/rank_groups.hpp"
#include "sim/core/units.hpp"
#include "sim/kernels/kernel_time.hpp"
#include "sim/measurements/collective_curves.hpp"
#include "sim/measurements/price_errors.hpp"

namespace orrery {

/// The peers of each member.
enum class CollectivePattern {
  ring,  ///< The next member of the domain, and the member of the same place in the next domain.
  tree,  ///< The same inside; between domains up and down a double binary tree.
  switches,  ///< The same inside; between domains the fabric's switches, which reduce.
  pairs,     ///< Every member to every other.
  shift,     ///< The member behind; the last to the first.
};

/// A collective as a latency and, after it, flows that every member sends and receives at once: one
/// over its NVLink port and one over its NIC. Alone it takes time(); with other traffic on the
/// links the engine shares them. A rate is the algorithm's on an idle link.
struct CollectiveCost {
  Seconds latency;
  Bytes scale_up_bytes;
  BytesPerSecond scale_up_rate;
  Bytes network_bytes;
  BytesPerSecond network_rate;
  CollectivePattern pattern = CollectivePattern::ring;
  std::string_view algorithm = "none";  ///< "ring", "tree", "NVLS", ...; "pairwise", "send_recv".
  std::string_view protocol = "none";   ///< "LL", "LL128", "Simple".
  int channels = 0;                     ///< Multiprocessors that it occupies on each GPU.
  Tag tag = Tag::default_value;

  Seconds time() const;
  /// True if the NIC's bytes are the bottleneck, and not NVLink's.
  bool network_decides() const;
  /// The errors that its latency has, and the time of its bytes.
  PriceKind latency_kind() const;
  PriceKind bytes_kind() const;
  /// A lower bound of the time: the bytes of each port at its line rate.
  Seconds at_line_rates(BytesPerSecond port, BytesPerSecond nic) const {
    return std::max(scale_up_bytes / port, network_bytes / nic);
  }
  /// Standard deviation of ln(measured / time()).
  double deviation(const PriceErrors& errors) const;
  /// This share of the collective, for example if the rest is pipelined into a GEMM.
  CollectiveCost scaled(double share) const;
};

/// A collective and its group.
struct GroupCollective {
  CollectiveCost cost;
  GroupKind group = GroupKind::tensor;
  bool combine = false;  ///< Expert groups: brings tokens back; else takes them there.
  /// Share of each GPU's multiprocessors that it occupies, times their measured weight
  /// (KernelModel::overlap_loss_share): concurrent kernels have the rest.
  double taken = 0.0;
  /// Share of a copy's memory bandwidth that it takes from memory-bound kernels.
  double taken_memory = 0.0;

  Seconds time() const { return cost.time(); }
};

/// Bytes on the wires of the busiest member: through its NVLink port and its NIC, each in the
/// busier direction.
struct WireBytes {
  Bytes inside;
  Bytes outside;
  bool operator==(const WireBytes&) const = default;
};

/// Bytes that each rank sends per byte of the tensor: nccl-tests' factor between algorithm and bus
/// bandwidth (nccl-tests doc/PERFORMANCE.md). `n` >= 2.
double wire_share(CollectiveKind kind, int n);

/// Half tensors that the busiest domain sends over the network in a double binary tree of so many
/// domains, reducing upwards and broadcasting downwards: 2 between two domains, which are root and
/// leaf in turn; else 4, for an inner domain of one tree (to a parent and two children) that is a
/// leaf of the other. Between three there are 3; the published all-reduces on three nodes are as
/// slow as on four (docs/explanation/collectives.md), and 4 is taken.
int tree_sends(int domains);

/// One collective: S bytes of all ranks together, as nccl-tests count, on n ranks, p of them in
/// each of N domains.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Bytes tensor;
  GroupShape group;
};

/// The rounds of rings, w = wire_share x S: w in one domain, else (p-1)/p w over NVLink and w/p
/// over the NIC.
WireBytes ring_bytes(const CollectiveCall& call);
/// A chain inside a domain, up and down: 2 (p-1)/p S over NVLink.
Bytes chain_bytes(const CollectiveCall& call);
/// A double binary tree over the domains, of a share for each member: S/p or 2 S/p over the NIC.
Bytes tree_bytes(const CollectiveCall& call);

}  // namespace orrery
