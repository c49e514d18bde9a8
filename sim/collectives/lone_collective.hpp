#pragma once

#include "sim/collectives/collective_time.hpp"
#include "sim/engine/timeline.hpp"

namespace orrery {

/// One collective that has the whole machine to itself.
struct LoneCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int ranks = 1;
  int nodes = 1;
  Bytes bytes;  ///< The whole tensor, as nccl-tests count.
  /// An all-reduce in three: reduce-scatter inside each domain, all-reduce of the shares between
  /// domains, each over the members of one place, all-gather inside each domain.
  bool hierarchical = false;
};

struct LoneCollectiveTime {
  CollectiveCost cost;  ///< Of a hierarchical one that of its part between domains.
  Seconds time;         ///< Simulated: placement, flows, links, SimGrid.
  int flows = 0;        ///< That were simulated.
  Engine engine = Engine::own;

  BytesPerSecond algorithm_bandwidth(const LoneCollective& of) const;
  BytesPerSecond bus_bandwidth(const LoneCollective& of) const;
};

/// Runs `collective` on the links of `system`: on a uniform one the flows of one rank of each role,
/// else one flow a link, or, where legs of different sizes meet, one of each class of flows
/// (fold_flows.hpp); `unfolded`: every flow over its own route. No bytes, or one rank,
/// take no time. `host_memory`: what the simulation may take of this machine's memory; 0: any.
/// Errors (infeasible): ranks that do not lie evenly on the nodes; no allowed algorithm; no way
/// between two ranks; more memory than that.
LoneCollectiveTime run_alone(const LoneCollective& collective, const System& system,
                             const CollectiveOptions& options = {}, bool unfolded = false,
                             Engine engine = Engine::own, Bytes host_memory = {});

}  // namespace orrery
