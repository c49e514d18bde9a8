#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/json_value.hpp"

namespace orrery {

/// Constants of NCCL's uncontended time inside one NVLink domain on one kind of GPU
/// (calibration/data/collectives.json; docs/explanation/collectives.md has the formula).
/// Efficiencies are shares of the NVLink rate that NCCL counts with; ramps are extra time that
/// grows with the bytes on the wire and saturates.
struct CollectiveConstants {
  struct Ramp {
    Seconds height;
    Bytes half;  ///< Bytes at which half of the height is reached.
    Seconds at(Bytes wire) const { return height * (wire / (wire + half)); }
  };

  std::string gpu;  ///< The GPU of these constants: may be a proxy, "default" or "default-pcie".
  bool measured = false;  ///< False: neither the GPU nor a proxy has a sweep.
  double nvlink_share = 1.0;
  Seconds base, hop;  ///< Ring: base + hop x steps.
  Seconds p2p_base, p2p_hop;
  double ring_efficiency = 1.0;
  double p2p_efficiency = 1.0;
  std::optional<double> local_copy;  ///< Each rank copies its own share at this rate.
  std::optional<double> nvls_efficiency;
  Ramp ring_ramp, p2p_ramp;
  Ramp nvls_ramp;  ///< Values at 8 ranks; both members grow with the ranks.

  /// NVLS as a loop over chunks: each takes `step` more than its bytes, and `fill` first chunks
  /// pass before the pipeline is full.
  struct Loop {
    double efficiency = 1.0;
    Seconds step;
    double fill = 0.0;
  };
  std::optional<Loop> nvls_loop;
  std::optional<double> send_efficiency;  ///< One transfer from one GPU to another, isolated.
  double p2p_channel_cap = 20.0;          ///< The most that one pair of an all-to-all reaches.

  /// PCIe: payload share of flagged small messages, and the remaining share of the rates if more
  /// than `more_than` GPUs of a node take part, so that some pairs cross host bridges, and then CPU
  /// sockets.
  struct Crossing {
    int more_than = 0;  ///< GPUs of the node.
    double ring = 1.0, p2p = 1.0;
  };
  std::optional<double> low_latency, p2p_low_latency;
  std::vector<Crossing> crossings;  ///< Sorted by `more_than`.
  Crossing crossing(int ranks_in_domain) const;

  /// Shares of the network's latency between domains: a tree node's turn from receiving to sending,
  /// and each further remote peer of an all-to-all.
  double tree_turn = 0.0, peer_turn = 0.0;
  /// Bytes of a NIC that have half of System::network_chunk_latency.
  Bytes chunk_half{1.0};
  double nvls_tree_share = 1.0;  ///< NVLS under a tree over NVLS alone.
};

/// Constants of `gpu`, of its proxy, or the defaults, which depend on `in_pcie_node`.
CollectiveConstants read_collective_constants(const std::string& gpu, bool in_pcie_node);

}  // namespace orrery
