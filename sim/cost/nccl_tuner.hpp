#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "sim/core/error.hpp"
#include "sim/cost/collective_cost.hpp"
#include "sim/cost/op.hpp"
#include "sim/input/system.hpp"

namespace orrery {

enum class NcclAlgorithm { tree, ring, collnet_direct, collnet_chain, nvls, nvls_tree, pat };
enum class NcclProtocol { ll, ll128, simple };
constexpr int nccl_algorithms = 7;
constexpr int nccl_protocols = 3;

std::string_view name(NcclAlgorithm algorithm);  ///< "tree", "ring", "CollNet", "NVLS", ...
std::string_view name(NcclProtocol protocol);    ///< "LL", "LL128", "Simple"

/// Which algorithms and protocols NCCL may take.
struct NcclSelection {
  std::array<bool, nccl_algorithms> algorithms;
  std::array<bool, nccl_protocols> protocols;
  bool forced = false;

  NcclSelection() { algorithms.fill(true), protocols.fill(true); }
  bool allows(NcclAlgorithm one) const { return algorithms[static_cast<std::size_t>(one)]; }
  bool allows(NcclProtocol one) const { return protocols[static_cast<std::size_t>(one)]; }
};

/// From the values of NCCL_ALGO and NCCL_PROTO: names separated by commas, of either case; '^' in
/// front means all but these. Empty: all. Errors (bad_input) name --nccl-algo or --nccl-proto.
NcclSelection parse_nccl_selection(const std::string& algorithms, const std::string& protocols);

/// NCCL's own choice, by its own figures (NVIDIA/nccl src/graph/tuning.cc, v2.28; Apache-2.0). It
/// ranks algorithms well, but its times are some 25 % off measured ones (docs/COLLECTIVES.md):
/// Orrery takes the names from it, and of the times only ratios.
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
