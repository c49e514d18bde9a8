#pragma once

#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/plan/placement.hpp"

namespace orrery {

/// What the fabric adds to a hop of `group`'s rings between domains (Topology::further_switches),
/// in the mean over the hops that a round-trip's N - 1 rounds cross: all of a ring's N but the
/// shortest. Of several rings the slowest. 0 for a group inside one domain.
Seconds further_switches(const Placement& placement, const Topology& topology,
                         const std::vector<Rank>& group);

/// Two ranks as a group, with what the fabric adds to the hop between them.
GroupShape pair_shape(const Placement& placement, const Topology& topology, Rank a, Rank b);

/// Placement::shapes() with what the fabric adds to the hops of the slowest group of each kind.
GroupShapes shapes_on(const System& system, const Placement& placement, const Topology& topology);

}  // namespace orrery
