#pragma once

#include <optional>
#include <string>

#include "sim/base/text/json_value.hpp"

namespace orrery {

/// Constants of NCCL's uncontended time inside one NVLink domain on one kind of GPU
/// (calibration/data/collectives.json; docs/COLLECTIVES.md has the formula). Efficiencies are
/// shares of the NVLink rate that NCCL counts with; ramps are extra time that grows with the bytes
/// on the wire and saturates.
struct CollectiveConstants {
  struct Ramp {
    Seconds height;
    Bytes half;  ///< Bytes at which half of the height is reached.
    Seconds at(Bytes wire) const { return height * (wire / (wire + half)); }
  };

  std::string gpu;        ///< Whose constants these are: a stand-in's, or "default".
  bool measured = false;  ///< false: the GPU has no sweep of its own, nor a stand-in.
  double nvlink_share = 1.0;
  Seconds base, hop;  ///< Ring: base + hop x steps.
  Seconds p2p_base, p2p_hop;
  double ring_efficiency = 1.0;
  double p2p_efficiency = 1.0;
  std::optional<double> local_copy;  ///< Each rank copies its own share at this rate.
  std::optional<double> nvls_efficiency;
  Ramp ring_ramp, p2p_ramp;
  Ramp nvls_ramp;  ///< At 8 ranks; both its members grow with the ranks.

  /// NVLS as a loop over chunks: each takes `step` more than its bytes, and `fill` first chunks
  /// pass before the pipeline is full.
  struct Loop {
    double efficiency = 1.0;
    Seconds step;
    double fill = 0.0;
  };
  std::optional<Loop> nvls_loop;
  std::optional<double> send_efficiency;  ///< Of a transfer from one GPU to another, alone.
  double p2p_channel_cap = 20.0;          ///< What one pair of an all-to-all reaches at most.

  /// PCIe: payload share of flagged small messages, and what is left of the rates where more than
  /// `local_ranks` GPUs take part, so that some pairs cross between CPU sockets.
  std::optional<double> low_latency, p2p_low_latency;
  double ring_crossing = 1.0, p2p_crossing = 1.0;
  int local_ranks = 1 << 20;

  /// Between domains, as shares of the network's latency: a tree node's turn from receiving to
  /// sending, and each further remote peer of an all-to-all.
  double tree_turn = 0.0, peer_turn = 0.0;
  double nvls_tree_share = 1.0;  ///< NVLS under a tree over NVLS alone.
};

CollectiveConstants read_collective_constants(const std::string& gpu);

}  // namespace orrery
