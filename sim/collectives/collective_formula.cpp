#include "sim/collectives/collective_formula.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace orrery {
namespace {

int tree_depth(int domains) { return static_cast<int>(std::ceil(std::log2(domains))); }

CollectiveCost faster(const CollectiveCost& a, const CollectiveCost& b) {
  return b.time() < a.time() ? b : a;
}

// NVLS moves a tensor in loops of channels x ranks x chunk; the chunk shrinks for small tensors
// (NVIDIA/nccl src/enqueue.cc, 16 channels on Hopper: src/transport/nvls.cc).
constexpr int nvls_channels = 16;
constexpr double kib = 1024.0;

double nvls_chunk(double bytes, int ranks) {
  const double lanes = nvls_channels * ranks;
  double chunk = 128 * kib;
  if (bytes < 64 * lanes * chunk) chunk = 64 * kib;
  if (bytes < 8 * lanes * chunk) chunk = 32 * kib;
  if (bytes < 2 * lanes * chunk) chunk = 16 * kib;
  return chunk;
}

}  // namespace

int ring_rounds(CollectiveKind kind, int n) { return std::max(1, facts(kind).passes) * (n - 1); }

int mesh_rings(int n) {
  // A unit test finds them on the graph of the links. A lone GPU has its links and no ring.
  static constexpr std::array<int, 9> rings{6, 6, 1, 2, 4, 2, 2, 4, 6};
  return rings[static_cast<std::size_t>(std::clamp(n, 0, 8))];
}

CollectiveModel::CollectiveModel(const System& system)
    : system_{system},
      constants_{read_collective_constants(system.gpu.name, system.wiring == NodeWiring::pcie)},
      nvlink_{constants_.nvlink_share * system.scale_up},
      nic_{system.network_efficiency * system.nics_per_node / system.gpus_per_node * system.nic} {}

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

Seconds CollectiveModel::hop() const { return std::max(constants_.hop, system_.scale_up_latency); }

Seconds CollectiveModel::network_hop(GroupShape group) const {
  return system_.network_latency + group.further_switches;
}

// Up and down a binary tree of domains: a network hop each level, and between two levels the turn
// from receiving to sending on.
Seconds CollectiveModel::tree_latency(GroupShape group) const {
  const int depth = tree_depth(group.domains);
  const int turns = std::max(0, depth - 1);
  return 2.0 *
         (depth * network_hop(group) + turns * constants_.tree_turn * system_.network_latency);
}

// One NVLink hop from member to member of a domain, one network hop from each domain to the next.
Seconds CollectiveModel::ring_steps(CollectiveKind kind, GroupShape group) const {
  const int rounds = ring_rounds(kind, group.ranks);
  const int outside = rounds / (group.ranks - 1) * (group.domains - 1);
  return (rounds - outside) * hop() + outside * network_hop(group);
}

// A chain inside each domain and a tree over the domains (NVIDIA/nccl src/graph/tuning.cc), up to
// reduce and down to broadcast.
Seconds CollectiveModel::tree_steps(GroupShape group) const {
  return 2.0 * (group.per_domain - 1) * hop() + tree_latency(group);
}

// What a ring's rounds carry, `steps` being their latency. NCCL lays as many rings as the members
// of a domain have NICs, each leaving by another NIC, so that every member's NIC carries its share
// of the traffic that leaves the domain.
CollectiveCost CollectiveModel::ring(CollectiveKind kind, Bytes tensor, GroupShape group,
                                     Seconds steps) const {
  const int n = group.ranks;
  const Bytes wire = wire_share(kind, n) * tensor;

  CollectiveCost cost = priced();
  if (group.domains > 1) cost.tag = Tag::default_value;
  cost.algorithm = "ring";
  if (group.domains > 1) {
    cost.network_bytes = wire / group.per_domain;
    cost.network_rate = nic_;
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
  // Small messages over PCIe travel with a flag beside each word: no ramp, but less payload.
  flags.scale_up_rate = *constants_.low_latency * flags.scale_up_rate;
  return faster(cost, flags);
}

// Reduction in the switch: each port carries the tensor once, and 1/n of it for the multicast.
CollectiveCost CollectiveModel::nvls(Bytes tensor, int ranks) const {
  CollectiveCost cost = priced();
  cost.algorithm = "NVLS";
  cost.scale_up_bytes = (1.0 + 1.0 / ranks) * tensor;
  // The formula's latency counts a ring's steps; in one node of at most 8 it was fitted so.
  const Seconds latency = constants_.base + 2.0 * (std::min(ranks, 8) - 1) * hop();
  // The loop was fitted from 2 MiB to 16 GiB, in nodes of 8.
  constexpr Bytes smallest_loop{2.0 * kib * kib};
  if (constants_.nvls_loop && ranks <= 8 && tensor >= smallest_loop) {
    const auto& loop = *constants_.nvls_loop;
    const Bytes loop_bytes{nvls_channels * ranks * nvls_chunk(tensor.si(), ranks)};
    const Seconds port = cost.scale_up_bytes / (loop.efficiency * nvlink_);
    const Seconds first = std::min(1.0, loop_bytes / tensor) * port + loop.step;
    cost.scale_up_rate = cost.scale_up_bytes / (port + tensor / loop_bytes * loop.step);
    cost.latency = latency + loop.fill * first;
    return cost;
  }
  cost.scale_up_rate = *constants_.nvls_efficiency * nvlink_;
  const double scale = ranks / 8.0;
  const CollectiveConstants::Ramp ramp{scale * constants_.nvls_ramp.height,
                                       scale * constants_.nvls_ramp.half};
  cost.latency = latency + ramp.at(wire_share(CollectiveKind::all_reduce, ranks) * tensor);
  return cost;
}

// NVLS inside each domain leaves every member a share, which trees over the domains reduce: two
// domains swap it; in a double binary tree an inner node sends it to a parent, or to two children.
CollectiveCost CollectiveModel::nvls_tree(Bytes tensor, GroupShape group) const {
  CollectiveCost cost = nvls(tensor, group.per_domain);
  cost.algorithm = "NVLS-tree";
  cost.tag = Tag::default_value;
  cost.scale_up_rate = constants_.nvls_tree_share * cost.scale_up_rate;
  cost.network_bytes =
      wire_bytes(NcclAlgorithm::nvls_tree, CollectiveKind::all_reduce, tensor, group).outside;
  cost.network_rate = nic_;
  cost.latency += tree_latency(group);
  if (constants_.nvls_loop) {
    // A chunk of 64 KiB a lane climbs the whole tree and comes down before the last one is out.
    const Bytes climbing = std::min(tensor, Bytes{nvls_channels * group.per_domain * 64 * kib});
    cost.latency += 2.0 * tree_depth(group.domains) * (climbing / tensor) *
                    (cost.scale_up_bytes / (constants_.nvls_loop->efficiency * nvlink_));
  }
  return cost;
}

// Each member reduces its share inside the domain, sends it to the fabric's switches, which reduce
// it on its way up, and gets the sum back: one crossing of the network, and half a ring's bytes.
CollectiveCost CollectiveModel::collnet(Bytes tensor, GroupShape group) const {
  const int hops = group.per_domain > 1 ? 2 : 0;
  CollectiveCost cost = ring(CollectiveKind::all_reduce, tensor, group,
                             static_cast<double>(hops) * hop() + network_hop(group));
  cost.algorithm = "CollNet";
  const WireBytes wire =
      wire_bytes(NcclAlgorithm::collnet_direct, CollectiveKind::all_reduce, tensor, group);
  cost.scale_up_bytes = wire.inside;
  cost.network_bytes = wire.outside;
  return cost;
}

// n - 1 sends and receives at once: over NVLink inside a domain, over the NIC out of it.
CollectiveCost CollectiveModel::all_to_all(Bytes tensor, GroupShape group) const {
  const int n = group.ranks;
  const int remote = n - group.per_domain;
  CollectiveCost cost = priced();
  cost.algorithm = "pairwise";
  cost.pattern = CollectivePattern::pairs;
  if (group.per_domain > 1) {
    const int peers = group.per_domain - 1;
    const auto crossing = constants_.crossing(group.per_domain);
    if (crossing.more_than > 0) cost.tag = Tag::default_value;
    // A pair has few channels, which bind where there are few pairs.
    const double share =
        std::min(crossing.p2p * constants_.p2p_efficiency, constants_.p2p_channel_cap * peers);
    cost.scale_up_bytes = static_cast<double>(peers) / n * tensor;
    cost.scale_up_rate = share * link(group.per_domain);
    const double ramps = constants_.p2p_low_latency && peers > 1 ? 2.0 : 1.0;
    cost.latency = constants_.p2p_base + peers * constants_.p2p_hop;
    CollectiveCost flags = cost;
    cost.latency += ramps * constants_.p2p_ramp.at(cost.scale_up_bytes);
    if (constants_.p2p_low_latency) {
      flags.scale_up_rate = *constants_.p2p_low_latency * flags.scale_up_rate;
      cost = faster(cost, flags);
    }
  }
  if (remote > 0) {
    cost.tag = Tag::default_value;
    cost.network_bytes = static_cast<double>(remote) / n * tensor;
    cost.network_rate = nic_;
    cost.latency = std::max(
        cost.latency, network_hop(group) + constants_.peer_turn * remote * system_.network_latency);
  }
  return cost;
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
  // Between two the reply rides along; a shift round a ring loads both directions of a port.
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
  if (kind != CollectiveKind::all_reduce) return ring(kind, tensor, group, ring_steps(kind, group));
  // Long rings lose to a double binary tree over the domains, which NCCL's tuner then takes.
  const Seconds around = ring_steps(kind, group);
  const Seconds up_and_down = group.domains > 1 ? tree_steps(group) : around;
  CollectiveCost best = ring(kind, tensor, group, std::min(around, up_and_down));
  if (up_and_down < around) best.algorithm = "tree";
  if (reduces_in_nvswitch(group) && group.per_domain > 2)
    best = faster(best, group.domains == 1 ? nvls(tensor, group.ranks) : nvls_tree(tensor, group));
  if (system_.fabric_reduction && group.domains > 1) best = faster(best, collnet(tensor, group));
  return best;
}

bool CollectiveModel::reduces_in_nvswitch(GroupShape group) const {
  return system_.in_network_reduction && group.per_domain > 1 &&
         constants_.nvls_efficiency.has_value();
}

std::optional<CollectiveCost> CollectiveModel::by(NcclAlgorithm algorithm, CollectiveKind kind,
                                                  Bytes tensor, GroupShape group) const {
  const bool all_reduce = kind == CollectiveKind::all_reduce;
  switch (algorithm) {
    case NcclAlgorithm::ring:
      return ring(kind, tensor, group, ring_steps(kind, group));
    case NcclAlgorithm::tree: {
      if (!all_reduce || group.domains == 1) return {};
      CollectiveCost cost = ring(kind, tensor, group, tree_steps(group));
      cost.algorithm = "tree";
      const WireBytes wire = wire_bytes(algorithm, kind, tensor, group);
      cost.scale_up_bytes = wire.inside;
      cost.network_bytes = wire.outside;
      return cost;
    }
    case NcclAlgorithm::nvls:
      if (!all_reduce || group.domains > 1 || !reduces_in_nvswitch(group)) return {};
      return nvls(tensor, group.ranks);
    case NcclAlgorithm::nvls_tree:
      if (!all_reduce || group.domains == 1 || !reduces_in_nvswitch(group)) return {};
      return nvls_tree(tensor, group);
    case NcclAlgorithm::collnet_direct:
      if (!all_reduce || group.domains == 1 || !system_.fabric_reduction) return {};
      return collnet(tensor, group);
    case NcclAlgorithm::collnet_chain:
    case NcclAlgorithm::pat:
      return {};
  }
  return {};
}

CollectiveCost CollectiveModel::send(Bytes bytes, bool same_domain) const {
  CollectiveCost cost = priced();
  cost.algorithm = "send_recv";
  if (same_domain) {
    cost.latency = constants_.p2p_base + system_.scale_up_latency + constants_.p2p_ramp.at(bytes);
    cost.scale_up_bytes = bytes;
    cost.scale_up_rate = constants_.p2p_efficiency * nvlink_;
  } else {
    cost.latency = constants_.p2p_base + system_.network_latency;
    cost.network_bytes = bytes;
    cost.network_rate = nic_;
    cost.tag = Tag::default_value;
  }
  return cost;
}

}  // namespace orrery
