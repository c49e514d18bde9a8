#pragma once

#include <optional>

#include "sim/cluster/rank_groups.hpp"
#include "sim/cluster/system.hpp"
#include "sim/collectives/collective_cost.hpp"
#include "sim/measurements/nccl_selection.hpp"

namespace orrery {

/// NCCL's own choice, by its own figures (NVIDIA/nccl src/graph/tuning.cc, v2.28; Apache-2.0). It
/// ranks algorithms well, but its times are some 25 % off (docs/notes/collective-errors.md). Orrery
/// takes the names from it, and of the times only ratios.
class NcclTuner {
 public:
  struct Choice {
    NcclAlgorithm algorithm = NcclAlgorithm::ring;
    NcclProtocol protocol = NcclProtocol::simple;
    int channels = 1;  ///< One thread block, and so one multiprocessor, each.
    Seconds time;
  };

  /// `nvlink`: what NCCL counts one GPU's links with.
  NcclTuner(const System& system, BytesPerSecond nvlink);

  /// The allowed choice of the least time; nothing where none applies to this collective.
  std::optional<Choice> choose(CollectiveKind kind, Bytes bytes, GroupShape group,
                               const NcclSelection& selection = {}) const;

 private:
  struct Rings {
    double bus;    ///< GB/s of all channels together.
    int channels;  ///< Of the search; kernels may use twice as many.
  };
  Rings rings(GroupShape group) const;
  double bandwidth(NcclAlgorithm, NcclProtocol, CollectiveKind, GroupShape, Rings) const;
  double latency(NcclAlgorithm, NcclProtocol, CollectiveKind, GroupShape) const;
  bool applies(NcclAlgorithm, NcclProtocol, CollectiveKind, GroupShape) const;

  System system_;
  int generation_ = 0;   ///< Column of NCCL's tables: Volta, Ampere, Hopper, Blackwell.
  double nvlink_ = 0.0;  ///< GB/s
  double nic_ = 0.0;     ///< GB/s of all NICs of a domain, line rate.
};

}  // namespace orrery
