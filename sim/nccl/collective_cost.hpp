#pragma once

#include <string_view>

#include "sim/cluster/rank_groups.hpp"
#include "sim/core/units.hpp"
#include "sim/kernels/kernel_time.hpp"
#include "sim/measurements/collective_curves.hpp"

namespace orrery {

/// Who sends to whom.
enum class CollectivePattern {
  ring,  ///< The next member of the domain, and the member of the same place in the next domain.
  tree,  ///< The same inside; between domains up and down a double binary tree.
  switches,  ///< The same inside; between domains the fabric's switches, which reduce.
  pairs,     ///< Every member to every other.
  shift,     ///< The member behind; the last to the first.
};

/// A collective as a latency and, after it, flows that every member sends and receives at once: one
/// over its NVLink port and one over its NIC. Alone it takes time(); where others use the same
/// links, the engine shares them. A rate is what the algorithm reaches on an idle link.
struct CollectiveCost {
  Seconds latency;
  Bytes scale_up_bytes;
  BytesPerSecond scale_up_rate;
  Bytes network_bytes;
  BytesPerSecond network_rate;
  CollectivePattern pattern = CollectivePattern::ring;
  std::string_view algorithm = "none";  ///< "ring", "tree", "NVLS", ...; "pairwise", "send_recv".
  std::string_view protocol = "none";   ///< "LL", "LL128", "Simple".
  int channels = 0;                     ///< As many multiprocessors does it occupy on each GPU.
  Tag tag = Tag::default_value;

  Seconds time() const;
  /// Whether it is the NIC's bytes that it waits for, and not NVLink's.
  bool network_decides() const;
  /// This share of the collective, as where the rest is pipelined into a GEMM.
  CollectiveCost scaled(double share) const;
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

/// What a collective puts on the wires of the busiest member: out of its NVLink port and out of its
/// NIC. Where less or more comes in, it is the busier direction.
struct WireBytes {
  Bytes inside;
  Bytes outside;
  bool operator==(const WireBytes&) const = default;
};

/// What each rank puts on the wire, per byte of the tensor: nccl-tests' factor between algorithm
/// and bus bandwidth (nccl-tests doc/PERFORMANCE.md). `n` >= 2.
double wire_share(CollectiveKind kind, int n);

/// How often the busiest domain sends half a tensor over the network in a double binary tree of so
/// many domains, reducing upwards and broadcasting downwards: 2 between two domains, which are root
/// and leaf in turn; else 4, of an inner domain in the one tree (to a parent and two children) that
/// is a leaf of the other. Between three there are 3; the published all-reduces on three nodes are
/// as slow as on four (docs/explanation/collectives.md), and 4 is taken.
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
