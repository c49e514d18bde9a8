#pragma once

#include "sim/cluster/topology.hpp"
#include "sim/engine/link_use.hpp"
#include "sim/plan/cast.hpp"

namespace orrery {

/// Ways where all ranks see the same picture (System::uniform); elsewhere the cast knows them.
///
/// The way from a role to the role that plays `to`: out by the links of the one, in by the links
/// of the other. Unfolded that is the route between the two ranks.
Way way(const Topology& topology, const Cast& cast, int from_role, Rank to);

/// The same between two roles (or twins that share one) whose ranks lie in one domain, or do not.
Way way(const Topology& topology, const Cast& cast, int from_role, int to_role, bool same_domain);

/// Only the links of `role` itself, on a way out of it or into it.
Way way_out(const Topology& topology, const Cast& cast, int role, bool same_domain);
Way way_in(const Topology& topology, const Cast& cast, int role, bool same_domain);

}  // namespace orrery
