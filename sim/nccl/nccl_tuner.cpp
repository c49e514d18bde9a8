#include "sim/nccl/nccl_tuner.hpp"

#include <algorithm>

#include "sim/nccl/collective_formula.hpp"

// All figures of this module's tuner: NVIDIA/nccl v2.28, src/graph/tuning.cc and
// src/graph/search.cc; GB/s and us.
namespace orrery {
namespace {

// Speeds of a channel that the search tries, from the highest: inside a node by generation, and
// between nodes.
using Speeds = std::array<std::vector<double>, 4>;
const Speeds inner_speeds{{{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3},
                           {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3},
                           {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3},
                           {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18}}};
const Speeds outer_speeds{
    {{48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12},
     {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12},
     {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12},
     {96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12}}};
constexpr int most_channels = 16;

int channels_of(double links, double speed) { return static_cast<int>(links / speed + 1e-9); }

}  // namespace

NcclTuner::NcclTuner(const System& system, BytesPerSecond nvlink)
    : system_{system},
      generation_{system.gpu.architecture == Architecture::volta       ? 0u
                  : system.gpu.architecture == Architecture::hopper    ? 2u
                  : system.gpu.architecture == Architecture::blackwell ? 3u
                                                                       : 1u},
      nvlink_{nvlink.si() / 1e9} {}

// The search takes the channels of the highest speed that use the links best, and splits fast ones.
// A channel leaves the node by one NIC. Trees over two nodes may be faster inside the nodes: there
// each rank sends data up and down, but only half of a ring's traffic crosses the network.
NcclGraph NcclTuner::graph(const CollectiveCall& call) const {
  const GroupShape& group = call.group;
  const bool between = group.domains > 1;
  const double nic = system_.network_rate(group.per_domain).si() / 1e9;
  NcclGraph found{call, system_, generation_, nvlink_, nic, 0.0, 0.0, 1};
  double links = nvlink_;
  if (system_.wiring == NodeWiring::nvlink_mesh) links *= mesh_rings(group.per_domain) / 6.0;
  const double line = system_.nic.si() / 1e9;
  const double nics = nic * group.per_domain / line;  // Of the domain.
  const auto channels_at = [&](double speed) {
    const int inside = !between || group.per_domain > 1 ? channels_of(links, speed) : most_channels;
    if (!between) return std::min(inside, most_channels);
    const int outside = static_cast<int>(nics * channels_of(line, speed) + 1e-9);
    return std::min({inside, outside, most_channels});
  };
  const std::vector<double>& speeds = (between ? outer_speeds : inner_speeds)[generation_];
  std::size_t best = 0;
  constexpr double slowest = 0.49;  // Of the best: the search tries no channels below.
  for (std::size_t i = 0; i < speeds.size(); ++i) {
    if (found.bus > 0.0 && speeds[i] <= slowest * speeds[best]) break;
    if (const int channels = channels_at(speeds[i]); channels * speeds[i] > found.bus)
      found.bus = channels * speeds[i], found.channels = channels, best = i;
  }
  if (found.bus == 0.0) {  // Slower than any speed on the list.
    found.bus = found.tree_bus = between ? std::min(links, nic * group.per_domain) : links;
    return found;
  }
  found.tree_bus = found.bus;
  if (group.domains == 2) {
    std::size_t raised = best;
    while (raised > 0 && speeds[raised] < 2.0 * speeds[best] &&
           channels_of(links, speeds[raised - 1]) >= found.channels)
      --raised;
    found.tree_bus = found.channels * speeds[raised];
  }
  constexpr double fast = 25.0, fast_since_hopper = 50.0;
  const bool many = generation_ >= 2 && found.channels > 4;
  if (speeds[best] >= (many ? fast_since_hopper : fast)) found.channels *= 2;
  return found;
}

std::optional<NcclTuner::Choice> NcclTuner::choose(const CollectiveCall& call,
                                                   const NcclSelection& selection) const {
  const NcclGraph found = graph(call);
  std::optional<Choice> best;
  for (const NcclAlgorithm* algorithm : selection.algorithms(call.kind))
    for (const NcclProtocol protocol : nccl_protocols) {
      if (!selection.allows(call.kind, protocol)) continue;
      // LL128 relies on NVLink's 128-byte stores, and between nodes on NICs near the GPU.
      if (protocol == NcclProtocol::ll128 && system_.wiring == NodeWiring::pcie) continue;
      const auto time = algorithm->tuned(found, protocol);
      if (time && (!best || *time < best->time)) best = Choice{algorithm, protocol, 1, *time};
    }
  if (best) best->channels = best->algorithm->channels(found, best->protocol);
  return best;
}

double figure(const ByGeneration& figures, const NcclGraph& graph) {
  const int domains = graph.call.group.domains;
  return figures[graph.generation][domains == 1 ? 0 : domains == 2 ? 1 : 2];
}

double capped(double bus, const ByGeneration& a_channel, const NcclGraph& graph) {
  return std::min(bus, graph.channels * figure(a_channel, graph));
}

double ring_ratio(const CollectiveCall& call) {
  const int n = call.group.ranks;
  return facts(call.kind).rooted ? 1.0 : static_cast<double>(n) / ring_rounds(call.kind, n);
}

Seconds tuned_time(const NcclGraph& graph, double wait, double rate) {
  return microseconds(wait) + graph.call.tensor / BytesPerSecond{1e9 * rate};
}

int launched_channels(const NcclGraph& graph, NcclProtocol protocol, double share) {
  const int most = std::min(32, 2 * graph.channels);
  const double threads = protocol == NcclProtocol::ll128 ? 640.0 : 512.0;
  const double least = threads * (protocol == NcclProtocol::simple ? 64.0 : 8.0) * share;
  return static_cast<int>(std::clamp(graph.call.tensor.si() / least, 1.0, 1.0 * most));
}

}  // namespace orrery
