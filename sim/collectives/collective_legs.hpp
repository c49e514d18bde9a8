#pragma once

#include "sim/collectives/collective_cost.hpp"
#include "sim/collectives/pair_exchange.hpp"

namespace orrery {

/// Who sends what to whom in one collective of `group`, which ascends: each hop of a ring, each
/// edge of a tree over the domains, each pair of an all-to-all, with all its rounds' bytes. The
/// busiest ports carry the cost's bytes; the others carry as much (rings, pairs) or less (trees,
/// shifts, and domains that hold more members than the smallest).
std::vector<Leg> legs_of(const Placement& placement, const std::vector<Rank>& group,
                         const CollectiveCost& cost);

/// What an all-to-all of this price exchanges: equally many bytes a pair.
Exchange exchange_of(const Placement& placement, const std::vector<Rank>& group,
                     const CollectiveCost& cost);

/// The links from a leg's one end to the other. What goes to the fabric's switches
/// (CollectivePattern::switches) ends there, and comes back from there.
std::vector<LinkId> way_of(const Topology& topology, const Leg& leg);

/// One flow a leg.
std::vector<Flow> flows_of(const Topology& topology, const std::vector<Leg>& legs);

}  // namespace orrery
