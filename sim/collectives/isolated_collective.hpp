#pragma once

#include <optional>

#include "sim/collectives/collective_flows.hpp"
#include "sim/collectives/collective_time.hpp"
#include "sim/engine/simulation.hpp"

namespace orrery {

/// Folds flows that start at one moment into one for each class that links cannot distinguish: as
/// many bytes, the same rate, and a route over classes of links with equal capacity that are
/// crossed by equally many flows of every class. The route of the representative names the first
/// link of each class as often as flows of its class cross it, so that max-min sharing gives it the
/// rate that each of them has in the whole (docs/explanation/simulation.md). Links appear in a
/// flow's route once and count once.
std::vector<Flow> fold_flows(const Topology& topology, const std::vector<Flow>& flows);

/// One flow a link for legs that start at one moment, meet no others, and have equally many bytes
/// where they meet: the flow has the bytes of all that cross it. The slowest leg is added as if it
/// were alone. The last of them ends when the last leg ends. For among legs that links connect,
/// which thus are equal in bytes, the link that needs longest for its bytes fills first in max-min
/// sharing (or the leg of the lowest rate reaches it first), at the lowest rate of all; its legs
/// keep that rate to their end, and all others are faster. Links of one capacity and load count
/// once. nullopt if legs of different sizes meet.
std::optional<std::vector<Flow>> link_flows(const Topology& topology, const std::vector<Leg>& legs);

/// One collective on an otherwise idle machine.
struct IsolatedCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int ranks = 1;
  int nodes = 1;
  Bytes bytes;  ///< The whole tensor, as nccl-tests count.
  /// An all-reduce in three phases: reduce-scatter inside each domain, all-reduce of the shares
  /// between domains, each over the members of one place, all-gather inside each domain.
  bool hierarchical = false;
};

struct IsolatedCollectiveTime {
  CollectiveCost cost;  ///< Hierarchical: cost of the part between domains.
  Seconds time;         ///< Simulated: placement, flows, links, SimGrid.
  int flows = 0;        ///< Number of simulated flows.
  Simulator simulator = Simulator::own;
  Seconds least{};  ///< Lower bound: the bytes at line rates. Hierarchical collectives: 0, unknown.

  BytesPerSecond algorithm_bandwidth(const IsolatedCollective& of) const;
  BytesPerSecond bus_bandwidth(const IsolatedCollective& of) const;
};

/// Simulates `collective` on the links of `system`: on a uniform one the flows of one rank of each
/// class, else one flow a link, or, if legs of different sizes meet, one of each class of flows
/// (fold_flows.hpp); `unfolded`: every flow over its own route. No bytes, or one rank, take no
/// time. `host_memory`: limit of the simulation on this machine's memory; 0: none. Errors
/// (infeasible): ranks that do not lie evenly on the nodes; no allowed algorithm; no route between
/// two ranks; more memory than the limit.
IsolatedCollectiveTime run_alone(const IsolatedCollective& collective, const System& system,
                                 const CollectiveOptions& options = {}, bool unfolded = false,
                                 Bytes host_memory = {});

}  // namespace orrery
