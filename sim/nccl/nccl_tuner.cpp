#include "sim/nccl/nccl_tuner.hpp"

#include <algorithm>

#include "sim/nccl/collective_formula.hpp"

// All figures of this module's tuner: NVIDIA/nccl v2.28, src/graph/tuning.cc and
// src/graph/search.cc; GB/s and us.
namespace orrery {
namespace {

// Speeds of a channel that the search tries, from the highest.
const std::array<std::vector<double>, 4> speeds{{{40, 30, 20, 18, 15, 12, 10},
                                                 {40, 30, 20, 18, 15, 12, 10},
                                                 {60, 50, 40, 30, 24, 20, 15, 12},
                                                 {90, 80, 70, 60, 50, 45, 40, 30, 24, 20}}};

}  // namespace

NcclTuner::NcclTuner(const System& system, BytesPerSecond nvlink)
    : system_{system},
      generation_{system.gpu.architecture == Architecture::volta       ? 0u
                  : system.gpu.architecture == Architecture::hopper    ? 2u
                  : system.gpu.architecture == Architecture::blackwell ? 3u
                                                                       : 1u},
      nvlink_{nvlink.si() / 1e9},
      nic_{system.nic.si() / 1e9 * system.nics_per_node / system.gpus_per_node} {}

// The search takes the channels of the highest speed that use the links best, and splits fast ones.
NcclGraph NcclTuner::graph(const CollectiveCall& call) const {
  const GroupShape& group = call.group;
  NcclGraph found{call, system_, generation_, nvlink_, nic_, 0.0, 1};
  double links = nvlink_;
  if (system_.wiring == NodeWiring::nvlink_mesh) links *= mesh_rings(group.per_domain) / 6.0;
  if (group.domains > 1)
    links = std::min(group.per_domain > 1 ? links : nic_, nic_ * group.per_domain);
  constexpr int most = 16;
  double speed_of_best = 0.0;
  for (const double speed : speeds[generation_]) {
    const int channels = std::min(most, static_cast<int>(links / speed + 1e-9));
    if (channels * speed > found.bus)
      found.bus = channels * speed, found.channels = channels, speed_of_best = speed;
  }
  if (found.bus == 0.0) found.bus = links;  // Slower than any speed on the list.
  constexpr double fast = 25.0;
  if (speed_of_best >= fast) found.channels *= 2;
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
