#pragma once

#include <vector>

#include "sim/graph/cast.hpp"
#include "sim/topology/topology.hpp"

namespace orrery {

/// A link of a flow's way, and how many flows of the same kind cross it at once. Max-min sharing
/// then sees as many as there are in the whole cluster.
struct LinkUse {
  LinkId link;
  int times = 1;
};

/// The way from a role to the role that plays `to`: out by the links of the one, in by the links
/// of the other. Unfolded that is the route between the two ranks.
std::vector<LinkUse> way(Topology& topology, const Cast& cast, int from_role, Rank to);

/// The same between two roles (or twins that share one) whose ranks lie in one domain, or do not.
std::vector<LinkUse> way(Topology& topology, const Cast& cast, int from_role, int to_role,
                         bool same_domain);

}  // namespace orrery
