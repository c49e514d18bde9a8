#pragma once

#include <string>

#include "sim/cluster/system.hpp"

namespace orrery {

/// The most GPUs of a platform: it has a route for each pair of them.
inline constexpr int most_platform_gpus = 512;

/// A SimGrid platform file (DTD version 4.1) of the first `gpus` GPUs of a system, as Batsim,
/// WRENCH and SimGrid's own programs read it: a host a GPU, a link for each direction of a wire,
/// and for each pair of GPUs the route that Orrery gives its flows, in a zone with full routing.
///
/// Hosts have the GPU's dense 16-bit peak as their speed. Links have the bandwidths that flows
/// reach (NICs after network efficiency) and latencies that add up to a route's.
/// Errors: infeasible routes, as of Topology::route. Asserts 1 <= gpus <= most_platform_gpus.
std::string simgrid_platform(const System& system, int gpus);

}  // namespace orrery
