#include "sim/cost/collective_time.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace orrery {
namespace {

// Rounds of a ring of n ranks, and the share of the tensor that each rank's port sends in all of
// them together (nccl-tests doc/PERFORMANCE.md): all-reduce is a reduce-scatter and an all-gather.
int ring_steps(CollectiveKind kind, int n) {
  return kind == CollectiveKind::all_reduce ? 2 * (n - 1) : n - 1;
}

double wire_share(CollectiveKind kind, int n) {
  switch (kind) {
    case CollectiveKind::all_reduce: return 2.0 * (n - 1) / n;
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter: return 1.0 * (n - 1) / n;
    case CollectiveKind::broadcast:
    case CollectiveKind::send_recv: return 1.0;
  }
  return 1.0;
}

Seconds transfer(Bytes bytes, BytesPerSecond rate) {
  return bytes.si() > 0.0 ? bytes / rate : Seconds{};
}

}  // namespace

Seconds CollectiveCost::time() const {
  return latency +
         std::max(transfer(scale_up_bytes, scale_up_rate), transfer(network_bytes, network_rate));
}

CollectiveCost CollectiveCost::scaled(double share) const {
  CollectiveCost part = *this;
  part.latency = share * latency;
  part.scale_up_bytes = share * scale_up_bytes;
  part.network_bytes = share * network_bytes;
  return part;
}

CollectiveTime::CollectiveTime(const System& system)
    : system_{system},
      constants_{read_collective_constants(system.gpu.name)},
      link_{constants_.nvlink_share * system.scale_up},
      nic_{system.network_efficiency * system.nics_per_node / system.gpus_per_node * system.nic} {}

// A ring through all members: NVLink hops inside a domain, one network hop from each domain to the
// next. NCCL lays as many rings as the members of a domain have NICs, each leaving by another NIC,
// so that every member's NIC carries its share of the traffic that leaves the domain.
CollectiveCost CollectiveTime::ring(CollectiveKind kind, Bytes tensor, GroupShape group) const {
  const int n = group.ranks;
  const Bytes wire = wire_share(kind, n) * tensor;
  const double rounds = static_cast<double>(ring_steps(kind, n)) / std::max(1, n - 1);

  CollectiveCost cost;
  cost.algorithm = "ring";
  cost.tag = constants_.measured && group.domains == 1 ? Tag::interpolated : Tag::default_value;
  cost.latency = constants_.base;
  if (group.per_domain > 1) {
    // Each member's port carries all of the ring's traffic but where the ring leaves the domain.
    const double inside = group.domains == 1
                              ? 1.0
                              : static_cast<double>(group.per_domain - 1) / group.per_domain;
    cost.scale_up_bytes = inside * wire;
    cost.scale_up_rate = constants_.ring_efficiency * link_;
    cost.latency += constants_.ring_ramp.at(wire);
    if (constants_.local_copy) cost.latency += tensor / (n * *constants_.local_copy * link_);
  }
  const double network_steps = rounds * (group.domains - 1);
  const double inside_steps = rounds * (n - 1) - network_steps;
  const Seconds hop = std::max(constants_.hop, system_.scale_up_latency);
  Seconds steps = inside_steps * hop + network_steps * system_.network_latency;
  if (group.domains > 1) {
    cost.network_bytes = wire / group.per_domain;
    cost.network_rate = nic_;
    // Long rings lose to a double binary tree over the domains, which NCCL's tuner then takes
    // (NVIDIA/nccl src/graph/tuning.cc): 2 log2(domains) network hops, a chain inside the domain.
    const Seconds tree =
        rounds * ((group.per_domain - 1) * hop +
                  std::ceil(std::log2(group.domains)) * system_.network_latency);
    if (kind == CollectiveKind::all_reduce && tree < steps) {
      steps = tree;
      cost.algorithm = "tree";
    }
  }
  cost.latency += steps;
  return cost;
}

// Reduction in the switch: each port carries the tensor once, and 1/n of it for the multicast.
CollectiveCost CollectiveTime::nvls_all_reduce(Bytes tensor, int ranks) const {
  CollectiveCost cost;
  cost.algorithm = "nvls";
  cost.tag = Tag::interpolated;
  cost.scale_up_bytes = (1.0 + 1.0 / ranks) * tensor;
  cost.scale_up_rate = *constants_.nvls_efficiency * link_;
  const double scale = ranks / 8.0;
  const CollectiveConstants::Ramp ramp{scale * constants_.nvls_ramp.height,
                                       scale * constants_.nvls_ramp.half};
  // The formula's latency counts a ring's steps; in one node of at most 8 it was fitted so.
  cost.latency = constants_.base + 2.0 * (std::min(ranks, 8) - 1) * constants_.hop +
                 ramp.at(2.0 * (ranks - 1) / ranks * tensor);
  return cost;
}

CollectiveCost CollectiveTime::operator()(CollectiveKind kind, Bytes tensor,
                                          GroupShape group) const {
  assert(group.per_domain >= 1 && group.per_domain * group.domains <= group.ranks);
  if (group.ranks == 1 || tensor.si() <= 0.0) return {};
  CollectiveCost best = ring(kind, tensor, group);
  const bool in_switch = kind == CollectiveKind::all_reduce && group.domains == 1 &&
                         group.ranks > 2 && system_.in_network_reduction &&
                         constants_.nvls_efficiency.has_value();
  if (in_switch) {
    const CollectiveCost nvls = nvls_all_reduce(tensor, group.ranks);
    if (nvls.time() < best.time()) best = nvls;
  }
  return best;
}

CollectiveCost CollectiveTime::send(Bytes bytes, bool same_domain) const {
  if (bytes.si() <= 0.0) return {};
  CollectiveCost cost;
  cost.algorithm = "send_recv";
  if (same_domain) {
    cost.latency = constants_.p2p_base + system_.scale_up_latency + constants_.p2p_ramp.at(bytes);
    cost.scale_up_bytes = bytes;
    cost.scale_up_rate = constants_.p2p_efficiency * link_;
    cost.tag = constants_.measured ? Tag::interpolated : Tag::default_value;
  } else {
    cost.latency = constants_.p2p_base + system_.network_latency;
    cost.network_bytes = bytes;
    cost.network_rate = nic_;
  }
  return cost;
}

}  // namespace orrery
