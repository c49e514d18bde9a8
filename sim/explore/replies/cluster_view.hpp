#pragma once

#include <string>

#include "sim/analysis/estimate/estimate.hpp"

namespace orrery {

/// Equal slices of the step in which loads of links are sent.
inline constexpr int slices_of_loads = 160;
/// Kinds of NVLink domains that are sent: those whose links are the busiest.
inline constexpr std::size_t most_domain_kinds = 24;

/// The cluster folded to what differs, and what crosses its links, a line of JSON:
///
///     {"step_ns", "slices", "step_s" (of busy fractions, as in a result),
///      "domain": {"gpus", "nodes", "nics" (of all its nodes), "nvlink": "switch", "mesh" or "",
///                 "pcie", "socket" (has such links)},
///      "cables": {"nvlink": 4096, ...}   (of the whole cluster, both directions one)
///      "kinds": [{"stages": [0], "gpus" (that ranks are on), "domains" (of that kind), "links"}],
///      "kinds_in_all", "tiers": [{"name": "spine", "count"}]  (of switches, from above)
///      "fabric": links between switches}
///
/// Links are those that something crosses, one entry for each class and direction: {"class":
/// "nvlink", "direction": "up" (away from a GPU), "down" or "", "name" (the busiest of them),
/// "links" (how many there are among the simulated), "least_fraction", "busy_fraction", "bytes",
/// "capacity_bytes_per_s", "by_user": as in a result, "over_time": {"tensor": [bytes, ...]}}; what
/// a user sends over time adds up to by_user.
std::string cluster_view(const Estimate& answer);

}  // namespace orrery
