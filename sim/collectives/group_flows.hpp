#pragma once

#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/collectives/collective_time.hpp"
#include "sim/collectives/group_collective.hpp"
#include "sim/engine/task.hpp"
#include "sim/plan/cast.hpp"

namespace orrery {

/// The distinct roles of a group's members, ascending.
std::vector<int> roles_in(const Cast& cast, const std::vector<Rank>& group);

/// What a collective puts on the links: from every role in the group to its neighbours on the ring,
/// a flow inside its NVLink domain and one to the next domain. The flows of a ring's rounds are one
/// flow a hop (docs/FOLDING.md says how exact that is). `group` ascends.
/// `inside`, `outside`: what the flows are called where the cast knows their ways.
std::vector<Flow> collective_flows(const Topology& topology, const Cast& cast,
                                   const std::vector<Rank>& group, const CollectiveCost& cost,
                                   Traffic inside = Traffic::tensor_inside,
                                   Traffic outside = Traffic::tensor_outside);

/// The same of the group of a kind that `member` belongs to.
std::vector<Flow> collective_flows(const Topology& topology, const Cast& cast, Rank member,
                                   const GroupCollective& collective);

}  // namespace orrery
