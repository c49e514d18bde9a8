#pragma once

#include <array>
#include <optional>

#include "sim/nccl/nccl_selection.hpp"

namespace orrery {

/// NCCL's own choice, by its own figures (NVIDIA/nccl src/graph/tuning.cc, v2.28; Apache-2.0). It
/// ranks algorithms well, but its times are some 25 % off (docs/notes/collective-errors.md). Orrery
/// takes the names from it, and of the times only ratios.
class NcclTuner {
 public:
  struct Choice {
    const NcclAlgorithm* algorithm = nullptr;
    NcclProtocol protocol = NcclProtocol::simple;
    int channels = 1;
    Seconds time;
  };

  /// `nvlink`: bandwidth of one GPU's links in NCCL's search.
  NcclTuner(const System& system, BytesPerSecond nvlink);

  /// The allowed choice of the least time; nullopt if none applies to this collective.
  std::optional<Choice> choose(const CollectiveCall& call, const NcclSelection& selection =
                                                               NcclSelection::unrestricted()) const;

 private:
  NcclGraph graph(const CollectiveCall& call) const;

  System system_;
  std::size_t generation_ = 0;
  double nvlink_ = 0.0;  // The member of NcclGraph.
};

// Figures and formulas that several algorithms share, in GB/s and us.

using ByProtocol = std::array<double, std::size(nccl_protocols)>;
using BySpread = std::array<double, 3>;        ///< One node, two, four and more.
using ByGeneration = std::array<BySpread, 4>;  ///< Volta, Ampere, Hopper, Blackwell.

/// The most that protocol LL reaches, and the time of a tree's hop over the network.
inline constexpr ByGeneration nccl_ll_most{
    {{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}, {282, 90, 70}}};
inline constexpr ByProtocol nccl_tree_net{5.0, 8.5, 14};

inline std::size_t protocol_index(NcclProtocol protocol) {
  return static_cast<std::size_t>(protocol);
}
/// The figure of a system's generation and a group's number of domains.
double figure(const ByGeneration& figures, const NcclGraph& graph);
/// `bus`, limited to `a_channel` times the channels.
double capped(double bus, const ByGeneration& a_channel, const NcclGraph& graph);
/// Algorithm over bus bandwidth of rings and of algorithms that NCCL treats alike.
double ring_ratio(const CollectiveCall& call);
/// The time of the call after `wait` at `rate`.
Seconds tuned_time(const NcclGraph& graph, double wait, double rate);
/// NCCL launches twice the search's channels, and fewer where a thread would have too little to do
/// (src/enqueue.cc: 8 bytes a thread, times `share`; 64 in protocol Simple).
int launched_channels(const NcclGraph& graph, NcclProtocol protocol, double share);

}  // namespace orrery
