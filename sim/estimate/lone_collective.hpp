#pragma once

#include "sim/cost/collective_time.hpp"

namespace orrery {

/// One collective that has the whole machine to itself.
struct LoneCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int ranks = 1;
  int nodes = 1;
  Bytes bytes;  ///< The whole tensor, as nccl-tests count.
};

struct LoneCollectiveTime {
  CollectiveCost cost;
  Seconds time;  ///< Simulated: placement, flows, links, SimGrid.

  BytesPerSecond algorithm_bandwidth(const LoneCollective& of) const;
  BytesPerSecond bus_bandwidth(const LoneCollective& of) const;
};

/// Runs `collective` the way that a step's collectives go. No bytes, or one rank, take no time.
/// Errors (infeasible): ranks that do not lie evenly on the nodes; no allowed algorithm.
LoneCollectiveTime run_alone(const LoneCollective& collective, const System& system,
                             const CollectiveOptions& options = {});

}  // namespace orrery
