#pragma once

#include <optional>
#include <string>

#include "sim/input/json_value.hpp"

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
};

CollectiveConstants read_collective_constants(const std::string& gpu);

}  // namespace orrery
