#include "sim/nccl/collective_formula.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace orrery {
namespace {

// The most GPUs of a domain by whose NICs NCCL's rings and trees leave it. CoreWeave's nccl-tests
// on racks of 72 GB200 (coreweave/nccl-tests README, commit 0120901a, NCCL 2.26.2): an all-reduce
// over twenty has 433 GB/s of bus beyond a constant time, nine NICs at the 48.1 GB/s that each NIC
// of their H100 reaches there. Two racks swap 417 GB/s of at most 437. Partitions of four and eight
// GPUs use all of their NICs (NVIDIA/nccl issue 1801). Why nine is inferred: so many channels of
// 80 GB/s, a speed of NCCL's search, fill the 722 GB/s of a GPU's links (src/graph/search.cc).
constexpr int most_exits = 9;

CollectiveCost faster(const CollectiveCost& a, const CollectiveCost& b) {
  return b.time() < a.time() ? b : a;
}

// Bytes that each NIC sends in a ring, and about as many in a tree.
Bytes of_a_nic(const CollectiveCall& call) {
  return wire_share(call.kind, call.group.ranks) / call.group.per_domain * call.tensor;
}

}  // namespace

int tree_depth(int domains) { return static_cast<int>(std::ceil(std::log2(domains))); }

int ring_rounds(CollectiveKind kind, int n) { return std::max(1, facts(kind).passes) * (n - 1); }

int mesh_rings(int n) {
  // A unit test finds them on the graph of the links. A single GPU has its links and no ring.
  static constexpr std::array<int, 9> rings{6, 6, 1, 2, 4, 2, 2, 4, 6};
  return rings[static_cast<std::size_t>(std::clamp(n, 0, 8))];
}

CollectiveModel::CollectiveModel(const System& system, bool alone)
    : system_{system},
      alone_{alone},
      constants_{read_collective_constants(system.gpu.name, system.wiring == NodeWiring::pcie)},
      nvlink_{constants_.nvlink_share * system.scale_up},
      tuner_{system, nvlink_} {}

CollectiveCost CollectiveModel::priced() const {
  CollectiveCost cost;
  cost.tag = constants_.measured ? Tag::interpolated : Tag::default_value;
  return cost;
}

// Behind an NVSwitch all links of a GPU lead everywhere. In a mesh only those that a ring finds.
BytesPerSecond CollectiveModel::link(int ranks_in_domain) const {
  if (system_.wiring != NodeWiring::nvlink_mesh) return nvlink_;
  return mesh_rings(ranks_in_domain) / 6.0 * nvlink_;
}

BytesPerSecond CollectiveModel::leaving(int members) const {
  return std::min(1.0, 1.0 * most_exits / members) * nic(members);
}

Seconds CollectiveModel::hop() const { return std::max(constants_.hop, system_.scale_up_latency); }

Seconds CollectiveModel::network_hop(GroupShape group, Bytes a_nic) const {
  return system_.network_latency + group.further_switches +
         a_nic / (a_nic + constants_.chunk_half) * system_.network_chunk_latency;
}

// Up and down a binary tree of domains: a network hop each level, and between two levels the turn
// from receiving to sending on.
Seconds CollectiveModel::tree_latency(const CollectiveCall& call) const {
  const int depth = tree_depth(call.group.domains);
  const int turns = std::max(0, depth - 1);
  return 2.0 * (depth * network_hop(call.group, of_a_nic(call)) +
                turns * constants_.tree_turn * system_.network_latency);
}

// A chunk of 64 KiB for each of 16 channels and members of a domain climbs the whole tree and comes
// down before the last one is out (NVIDIA/nccl src/enqueue.cc; docs/notes/collective-racks.md).
Seconds CollectiveModel::climbing(const CollectiveCall& call, Seconds moving) const {
  const Bytes chunk{16.0 * 64 * 1024 * call.group.per_domain};
  return 2.0 * tree_depth(call.group.domains) * std::min(1.0, chunk / call.tensor) * moving;
}

// One NVLink hop from member to member of a domain, one network hop from each domain to the next.
Seconds CollectiveModel::ring_steps(const CollectiveCall& call) const {
  const GroupShape& group = call.group;
  const int rounds = ring_rounds(call.kind, group.ranks);
  const int outside = rounds / (group.ranks - 1) * (group.domains - 1);
  return (rounds - outside) * hop() + outside * network_hop(group, of_a_nic(call));
}

// A chain inside each domain and a tree over the domains (NVIDIA/nccl src/graph/tuning.cc), up to
// reduce and down to broadcast.
Seconds CollectiveModel::tree_steps(const CollectiveCall& call) const {
  return 2.0 * (call.group.per_domain - 1) * hop() + tree_latency(call);
}

// The cost of a ring's rounds, `steps` being their latency. NCCL lays as many rings as the members
// of a domain have NICs, each leaving by another NIC, so that every member's NIC carries its share
// of the traffic that leaves the domain.
CollectiveCost CollectiveModel::ring(const CollectiveCall& call, Seconds steps) const {
  const auto& [kind, tensor, group] = call;
  const int n = group.ranks;
  const Bytes wire = wire_share(kind, n) * tensor;

  CollectiveCost cost = priced();
  if (group.domains > 1) cost.tag = Tag::default_value;
  cost.algorithm = "ring";
  if (group.domains > 1) {
    cost.network_bytes = wire / group.per_domain;
    cost.network_rate = leaving(group.per_domain);
  }
  cost.latency = constants_.base + steps;
  if (group.per_domain < 2) return cost;

  // Each member's port carries all of the ring's traffic but where the ring leaves the domain. The
  // hop between sockets carries all of it wherever that is.
  const double inside =
      group.domains == 1 ? 1.0 : static_cast<double>(group.per_domain - 1) / group.per_domain;
  const auto crossing = constants_.crossing(group.per_domain);
  if (crossing.more_than > 0) cost.tag = Tag::default_value;  // Another host has other bridges.
  cost.scale_up_bytes = inside * wire;
  cost.scale_up_rate = (crossing.more_than > 0 ? inside * crossing.ring : 1.0) *
                       constants_.ring_efficiency * link(group.per_domain);
  CollectiveCost flags = cost;
  cost.latency +=
      (constants_.low_latency && group.per_domain > 2 ? 2.0 : 1.0) * constants_.ring_ramp.at(wire);
  const bool copies =
      !facts(kind).rooted && !(constants_.low_latency && kind == CollectiveKind::all_reduce);
  if (constants_.local_copy && copies)
    cost.latency += tensor / (n * *constants_.local_copy * nvlink_);
  if (!constants_.low_latency) return cost;
  // Small messages over PCIe travel with a flag next to each word: no ramp, but less payload.
  flags.scale_up_rate = *constants_.low_latency * flags.scale_up_rate;
  return faster(cost, flags);
}

// n - 1 sends and receives at once: over NVLink inside a domain, over the NIC out of it.
CollectiveCost CollectiveModel::all_to_all(Bytes tensor, GroupShape group) const {
  const int n = group.ranks;
  const int remote = n - group.per_domain;
  CollectiveCost cost = priced();
  cost.algorithm = "pairwise";
  cost.pattern = CollectivePattern::pairs;
  Seconds ramp, away;  // Added inside a domain unless messages go flagged; of the network.
  if (group.per_domain > 1) {
    const int peers = group.per_domain - 1;
    const auto crossing = constants_.crossing(group.per_domain);
    if (crossing.more_than > 0) cost.tag = Tag::default_value;
    // A pair has few channels, which limit few pairs.
    const double share =
        std::min(crossing.p2p * constants_.p2p_efficiency, constants_.p2p_channel_cap * peers);
    cost.scale_up_bytes = static_cast<double>(peers) / n * tensor;
    cost.scale_up_rate = share * link(group.per_domain);
    const double ramps = constants_.p2p_low_latency && peers > 1 ? 2.0 : 1.0;
    cost.latency = constants_.p2p_base + peers * constants_.p2p_hop;
    ramp = ramps * constants_.p2p_ramp.at(cost.scale_up_bytes);
  }
  if (remote > 0) {
    cost.tag = Tag::default_value;
    cost.network_bytes = static_cast<double>(remote) / n * tensor;
    cost.network_rate = nic(group.per_domain);
    away = network_hop(group, cost.network_bytes) +
           constants_.peer_turn * remote * system_.network_latency;
  }
  CollectiveCost flags = cost;
  cost.latency = std::max(cost.latency + ramp, away);
  if (group.per_domain < 2 || !constants_.p2p_low_latency) return cost;
  flags.latency = std::max(flags.latency, away);
  flags.scale_up_rate = *constants_.p2p_low_latency * flags.scale_up_rate;
  return faster(cost, flags);
}

// Every rank sends to the next and receives from the one before (nccl-tests' sendrecv_perf).
CollectiveCost CollectiveModel::send_recv(Bytes tensor, GroupShape group) const {
  CollectiveCost cost = send(tensor, group.domains == 1);
  cost.latency += group.further_switches;
  cost.pattern = CollectivePattern::shift;
  if (group.domains > 1 && group.per_domain > 1) {  // The others send inside their domain.
    cost.scale_up_bytes = tensor;
    cost.scale_up_rate = constants_.p2p_efficiency * link(group.per_domain);
  }
  // Two ranks reply over the same port; a shift round a ring loads both directions of it.
  if (group.ranks == 2 && group.domains == 1 && constants_.send_efficiency)
    cost.scale_up_rate = *constants_.send_efficiency * nvlink_;
  return cost;
}

CollectiveCost CollectiveModel::operator()(CollectiveKind kind, Bytes tensor,
                                           GroupShape group) const {
  assert(group.ranks > 1 && tensor.si() > 0.0);
  assert(group.per_domain >= 1 && group.per_domain * group.domains <= group.ranks);
  if (kind == CollectiveKind::all_to_all) return all_to_all(tensor, group);
  if (kind == CollectiveKind::send_recv) return send_recv(tensor, group);
  const CollectiveCall call{kind, tensor, group};
  // Equal times are a tie that the later of NCCL's list wins: the ring behind the tree.
  std::optional<CollectiveCost> best;
  for (auto one = nccl_algorithms().rbegin(); one != nccl_algorithms().rend(); ++one) {
    const auto cost = (*one)->is_default() ? (*one)->free_price(*this, call) : std::nullopt;
    if (cost && (!best || cost->time() < best->time())) best = cost;
  }
  return *best;  // A ring always applies.
}

bool CollectiveModel::reduces_in_nvswitch(GroupShape group) const {
  return system_.in_network_reduction && group.per_domain > 1 &&
         constants_.nvls_efficiency.has_value();
}

CollectiveCost CollectiveModel::send(Bytes bytes, bool same_domain) const {
  CollectiveCost cost = priced();
  cost.algorithm = "send_recv";
  if (same_domain) {
    cost.latency = constants_.p2p_base + system_.scale_up_latency + constants_.p2p_ramp.at(bytes);
    cost.scale_up_bytes = bytes;
    cost.scale_up_rate = constants_.p2p_efficiency * nvlink_;
  } else {
    cost.latency = constants_.p2p_base + network_hop({}, bytes);
    cost.network_bytes = bytes;
    cost.network_rate = nic(1);
    cost.tag = Tag::default_value;
  }
  return cost;
}

}  // namespace orrery
