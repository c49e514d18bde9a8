#pragma once

#include <array>
#include <vector>

#include "sim/cluster/topology.hpp"
#include "sim/engine/link_use.hpp"
#include "sim/plan/traffic.hpp"

namespace orrery {

/// The way of one role's traffic of one kind. Several roles of a collective may send flows of one
/// class: `times` counts all of them, so that the class is drawn once.
struct RoleWay {
  Way links;
  int flow_class = -1;
};

/// By kind; without links where the role has no traffic of that kind.
using WaysOfRole = std::array<RoleWay, traffic_kinds>;

/// Ranks, flows and links in classes whose members see the same picture.
struct Refinement {
  std::vector<int> role_of_rank;  ///< Roles count up in the order of their lowest ranks.
  std::vector<WaysOfRole> ways;   ///< By role, over one link of each class of links.
};

/// The coarsest partition of ranks, flows and links that is equitable: two ranks of a role have
/// equal speed and stage, are in equal groups, and of each class of flows send and receive equally
/// many; two flows of a class belong to equal groups (of two ranks only: join equal roles) and
/// cross equal classes of links in the same order; two links of a class have equal capacity and
/// latency and are crossed by equally many flows of every class. Where on its ring a rank sits does
/// not count: the ring's flows start with the slowest member and end with the slowest flow.
///
/// One rank a role, one link a class, and `times` for how often a class of flows crosses it: in
/// this quotient every flow has the rate that it has in the whole, because the max-min fair rates
/// of the whole are unique and equal within classes (docs/FOLDING.md). Colours are refined until
/// nothing splits; two partitions are taken for one only if a 64-bit hash collides.
Refinement refine(const Placement& placement, const Topology& topology,
                  const std::vector<double>& speed_of_rank);

}  // namespace orrery
