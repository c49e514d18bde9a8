#pragma once

#include <optional>
#include <string>

#include "sim/training/estimate.hpp"
#include "sim/training/link_loads.hpp"

namespace orrery {

/// Equal slices in which loads of links are sent.
inline constexpr int slices_of_loads = 160;
/// Kinds of NVLink domains that are sent: those whose links are the busiest.
inline constexpr std::size_t most_domain_kinds = 24;

/// The distinct parts of the cluster and the traffic on its links, a line of JSON:
///
///     {"step_ns", "step_s" (of busy fractions, as in a result),
///      "from_ns", "to_ns", "slices" (of "over_time"),
///      "domain": {"gpus", "nodes", "nics" (of all its nodes), "nvlink": "switch", "mesh" or "",
///                 "pcie", "socket" (has such links)},
///      "cables": {"nvlink": 4096, ...}   (of the whole cluster, both directions one)
///      "kinds": [{"stages": [0], "gpus" (that ranks are on), "domains" (of that kind), "links"}],
///      "kinds_in_all", "tiers": [{"name": "spine", "count"}]  (of switches, from above)
///      "fabric": links between switches}
///
/// Links are those with traffic, one entry for each class and direction: {"class":
/// "nvlink", "direction": "up" (away from a GPU), "down" or "", "name" (the busiest of them),
/// "links" (how many there are among the simulated), "least_fraction", "busy_fraction", "bytes",
/// "capacity_bytes_per_s", "by_user": as in a result, "over_time": {"tensor": [bytes, ...]}}; each
/// user's bytes over time add up to by_user if from_ns and to_ns are the whole step. `window`: of
/// "over_time", within the step; nothing: all of it.
std::string cluster_view(const Estimate& answer,
                         const std::optional<TimeSlice>& window = std::nullopt);

}  // namespace orrery
