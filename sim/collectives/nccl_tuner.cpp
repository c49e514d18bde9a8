#include "sim/collectives/nccl_tuner.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/collectives/collective_formula.hpp"

// All figures below: NVIDIA/nccl v2.28, src/graph/tuning.cc and src/graph/search.cc; GB/s and us.
namespace orrery {
namespace {

using Protocols = std::array<double, nccl_protocols>;  // LL, LL128, Simple
using Spread = std::array<double, 3>;                  // One node, two, four and more.
using Generations = std::array<Spread, 4>;             // Volta, Ampere, Hopper, Blackwell

constexpr Generations ll_max{{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};
constexpr Generations ring_ll128{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}}};
constexpr Generations tree_ll128{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}, {55.6, 31.7, 20}}};
constexpr Generations tree_simple{
    {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}}};
constexpr Generations tree_nvls{{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 80}}};
constexpr std::array<double, 4> nvls_efficiency{0, 0, 0.85, 0.74};

// CollNet, protocol Simple alone: us a hop inside the node and over the network; each further GPU
// of a node beside the head; how many GPUs the direct form serves in a node.
constexpr double direct_inside = 3.7, direct_net = 31, chain_inside = 2.8, chain_net = 30;
constexpr double direct_fan = 0.4;
constexpr int collnet_arity = 8;

constexpr Protocols tree_base{6.8, 14, 8.4};
constexpr Protocols ring_base{6.6, 14, 8.4};
constexpr Protocols tree_nvlink{0.6, 1.25, 4.0}, tree_pcie{1.0, 1.9, 4.0}, tree_net{5.0, 8.5, 14};
constexpr Protocols ring_nvlink{0.6, 1.9, 3.4}, ring_pcie{1.0, 2.5, 5.7}, ring_net{2.7, 4.0, 14};

// What a tree keeps of its bandwidth, by powers of two from 64 B to 256 MiB; afterwards the last.
const std::array<std::vector<double>, nccl_protocols> tree_correction{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1},
    {.9, .9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9},
}};

// Speeds of a channel that the search tries, from the highest.
const std::array<std::vector<double>, 4> speeds{{{40, 30, 20, 18, 15, 12, 10},
                                                 {40, 30, 20, 18, 15, 12, 10},
                                                 {60, 50, 40, 30, 24, 20, 15, 12},
                                                 {90, 80, 70, 60, 50, 45, 40, 30, 24, 20}}};

std::size_t protocol_index(NcclProtocol protocol) { return static_cast<std::size_t>(protocol); }

}  // namespace

NcclTuner::NcclTuner(const System& system, BytesPerSecond nvlink)
    : system_{system},
      generation_{system.gpu.architecture == Architecture::volta       ? 0
                  : system.gpu.architecture == Architecture::hopper    ? 2
                  : system.gpu.architecture == Architecture::blackwell ? 3
                                                                       : 1},
      nvlink_{nvlink.si() / 1e9},
      nic_{system.nic.si() / 1e9 * system.nics_per_node / system.gpus_per_node} {}

// As many channels of the highest speed as use the links best; fast ones are then split in two.
NcclTuner::Rings NcclTuner::rings(GroupShape group) const {
  double links = nvlink_;
  if (system_.wiring == NodeWiring::nvlink_mesh) links *= mesh_rings(group.per_domain) / 6.0;
  if (group.domains > 1)
    links = std::min(group.per_domain > 1 ? links : nic_, nic_ * group.per_domain);
  constexpr int most = 16;
  Rings best{0.0, 1};
  double speed_of_best = 0.0;
  for (const double speed : speeds[static_cast<std::size_t>(generation_)]) {
    const int channels = std::min(most, static_cast<int>(links / speed + 1e-9));
    if (channels * speed > best.bus) best = {channels * speed, channels}, speed_of_best = speed;
  }
  if (best.bus == 0.0) return {links, 1};  // Slower than any speed on the list.
  constexpr double fast = 25.0;
  if (speed_of_best >= fast) best.channels *= 2;
  return best;
}

bool NcclTuner::applies(NcclAlgorithm algorithm, NcclProtocol protocol, CollectiveKind kind,
                        GroupShape group) const {
  const bool all_reduce = kind == CollectiveKind::all_reduce;
  const bool gathers = facts(kind).passes == 1;
  const bool simple = protocol == NcclProtocol::simple;
  const bool in_switch = system_.in_network_reduction && group.per_domain > 1 && simple;
  const bool in_fabric = system_.fabric_reduction && group.domains > 1 && simple && all_reduce;
  // LL128 relies on NVLink's 128-byte stores, and between nodes on NICs beside the GPU.
  if (protocol == NcclProtocol::ll128 && system_.wiring == NodeWiring::pcie) return false;
  switch (algorithm) {
    case NcclAlgorithm::ring:
      return true;
    case NcclAlgorithm::tree:
      return all_reduce && group.domains > 1;
    case NcclAlgorithm::nvls:
      return in_switch && group.domains == 1 && (all_reduce || gathers);
    case NcclAlgorithm::nvls_tree:
      return in_switch && group.domains > 1 && all_reduce;
    case NcclAlgorithm::pat:
      return simple && gathers && group.per_domain == 1;
    case NcclAlgorithm::collnet_direct:
      return in_fabric && group.per_domain <= collnet_arity;
    case NcclAlgorithm::collnet_chain:
      return in_fabric;
  }
  return false;
}

double NcclTuner::bandwidth(NcclAlgorithm algorithm, NcclProtocol protocol, CollectiveKind kind,
                            GroupShape group, Rings rings) const {
  const auto generation = static_cast<std::size_t>(generation_);
  const std::size_t spread = group.domains == 1 ? 0 : group.domains == 2 ? 1 : 2;
  const auto capped = [&](double bus, const Generations& per_channel) {
    return std::min(bus, rings.channels * per_channel[generation][spread]);
  };
  const double ll = ll_max[generation][spread];
  const double bus = rings.bus;
  const int n = group.ranks;
  const double ratio = facts(kind).rooted ? 1.0 : static_cast<double>(n) / ring_rounds(kind, n);
  switch (algorithm) {
    case NcclAlgorithm::tree:
      if (protocol == NcclProtocol::ll) return 0.5 * std::min(bus / 3.8, ll);
      if (protocol == NcclProtocol::simple) return 0.5 * capped(0.92 * bus, tree_simple);
      return 0.5 * capped(bus * (group.domains == 1 ? 7.0 / 9 : 120.0 / 128), tree_ll128);
    case NcclAlgorithm::nvls:
    case NcclAlgorithm::nvls_tree: {
      const double channels = generation_ == 3 ? 24 : 16;
      double nvls = nvlink_ * nvls_efficiency[generation] * (channels - 1) / channels;
      if (kind != CollectiveKind::all_reduce)
        nvls *= (group.per_domain - 1.0) / group.per_domain;
      else
        nvls *= 2.0;
      if (algorithm == NcclAlgorithm::nvls_tree) {
        nvls = std::min(nvls, nic_ * group.per_domain * (group.domains == 2 ? 2.0 : 1.0));
        nvls = std::min(nvls, channels * tree_nvls[generation][spread]);
        return 0.5 * nvls;
      }
      return ratio * nvls;
    }
    case NcclAlgorithm::pat:
      return ratio * 0.75 * bus;
    case NcclAlgorithm::collnet_direct: {
      // At full speed where every GPU has a NIC: GPUs a channel, and half of what exceeds one.
      const double share = 1.0 * group.per_domain / rings.channels;
      return 0.5 * bus / (share - (share - 1.0) / 2) * (generation_ >= 2 ? 0.85 : 1.0);
    }
    case NcclAlgorithm::collnet_chain:
      return 0.5 * bus;
    case NcclAlgorithm::ring:
      break;
  }
  if (protocol == NcclProtocol::ll) return ratio * std::min(bus / 2, ll);
  if (protocol == NcclProtocol::ll128) return ratio * capped(0.92 * bus, ring_ll128);
  return ratio * bus;
}

double NcclTuner::latency(NcclAlgorithm algorithm, NcclProtocol protocol, CollectiveKind kind,
                          GroupShape group) const {
  const std::size_t p = protocol_index(protocol);
  const bool pcie = system_.wiring == NodeWiring::pcie;
  const double depth = std::log2(group.domains);
  switch (algorithm) {
    case NcclAlgorithm::tree:
      return tree_base[p] + 2.0 * ((group.per_domain - 1) * (pcie ? tree_pcie : tree_nvlink)[p] +
                                   depth * tree_net[p]);
    case NcclAlgorithm::nvls:
      return 25.0;
    case NcclAlgorithm::nvls_tree:
      return 25.0 + 2.0 * depth * 20.9;
    case NcclAlgorithm::pat:
      return 8.0 + depth * 14.0 / 3.5 + group.ranks * 2.8;
    case NcclAlgorithm::collnet_direct:
      return 2.0 * (std::min(1, group.per_domain - 1) * direct_inside +
                    (group.per_domain - 1) * direct_fan) +
             direct_net;
    case NcclAlgorithm::collnet_chain:
      return 2.0 * (group.per_domain - 1) * chain_inside + chain_net;
    case NcclAlgorithm::ring:
      break;
  }
  const double all = ring_rounds(kind, group.ranks);
  const double outside = (kind == CollectiveKind::all_reduce ? 2.0 : 1.0) * (group.domains - 1);
  const double post = protocol == NcclProtocol::simple ? 3.0 : 1.0;  // Intel hosts.
  const double net = std::max((group.per_domain == 1 ? tree_net : ring_net)[p], post);
  return ring_base[p] + (all - outside) * (pcie ? ring_pcie : ring_nvlink)[p] + outside * net;
}

std::optional<NcclTuner::Choice> NcclTuner::choose(CollectiveKind kind, Bytes bytes,
                                                   GroupShape group,
                                                   const NcclSelection& selection) const {
  const Rings found = rings(group);
  std::optional<Choice> best;
  for (int a = 0; a < nccl_algorithms; ++a)
    for (int p = 0; p < nccl_protocols; ++p) {
      const auto algorithm = static_cast<NcclAlgorithm>(a);
      const auto protocol = static_cast<NcclProtocol>(p);
      if (!selection.allows(kind, algorithm) || !selection.allows(kind, protocol) ||
          !applies(algorithm, protocol, kind, group))
        continue;
      double rate = bandwidth(algorithm, protocol, kind, group, found);
      double wait = latency(algorithm, protocol, kind, group);
      if (algorithm == NcclAlgorithm::tree) {
        const auto& kept = tree_correction[protocol_index(protocol)];
        const double step = std::clamp(std::floor(std::log2(bytes.si() / 64.0)), 0.0,
                                       static_cast<double>(kept.size() - 1));
        rate *= kept[static_cast<std::size_t>(step)];
      }
      // Large all-reduces of several nodes wait longer for each chunk of a ring.
      if (algorithm == NcclAlgorithm::ring && protocol == NcclProtocol::simple &&
          kind == CollectiveKind::all_reduce && group.domains > 1 &&
          bytes.si() / (found.channels * group.ranks) >= 64.0)
        wait *= generation_ == 0 ? 1.9 : 1.4;
      const Seconds time = microseconds(wait) + Bytes{bytes} / BytesPerSecond{1e9 * rate};
      if (!best || time < best->time) best = Choice{algorithm, protocol, 1, time};
    }
  if (!best) return best;
  // NCCL launches twice the search's channels, and fewer where a thread would have too little to do
  // (src/enqueue.cc: 8 bytes a thread, of a ring's LL times the ranks; 64 in protocol Simple).
  const bool nvls =
      best->algorithm == NcclAlgorithm::nvls || best->algorithm == NcclAlgorithm::nvls_tree;
  const int most = nvls ? (generation_ == 3 ? 24 : 16) : std::min(32, 2 * found.channels);
  double threads = best->protocol == NcclProtocol::ll128 ? 640.0 : 512.0;
  double least = threads * (best->protocol == NcclProtocol::simple ? 64.0 : 8.0);
  if (best->algorithm == NcclAlgorithm::ring && best->protocol == NcclProtocol::ll)
    least *= group.ranks;
  best->channels = nvls ? most : static_cast<int>(std::clamp(bytes.si() / least, 1.0, 1.0 * most));
  return best;
}

}  // namespace orrery
