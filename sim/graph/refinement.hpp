#pragma once

#include <array>
#include <vector>

#include "sim/graph/link_use.hpp"
#include "sim/graph/traffic.hpp"
#include "sim/topology/topology.hpp"

namespace orrery {

/// Ways of one role's traffic, by kind; empty where it has none of that kind.
using WaysOfRole = std::array<Way, traffic_kinds>;

/// Ranks, flows and links in classes whose members see the same picture.
struct Refinement {
  std::vector<int> role_of_rank;  ///< Roles count up in the order of their lowest ranks.
  std::vector<WaysOfRole> ways;   ///< By role, over one link of each class of links.
};

/// The coarsest partition of ranks, flows and links that is equitable: two ranks of a role have
/// equal speed and stage, and for each class of flows send and receive equally many; two flows of a
/// class start and end at equal roles and cross equal classes of links in the same order; two links
/// of a class have equal capacity and are crossed by equally many flows of every class.
///
/// One rank a role, one link a class, and `times` for how often a class of flows crosses it: in
/// this quotient every flow has the rate that it has in the whole, because the max-min fair rates
/// of the whole are unique and equal within classes (docs/FOLDING.md). Colours are refined until
/// nothing splits; two partitions are taken for one only if a 64-bit hash collides.
Refinement refine(const Placement& placement, const Topology& topology,
                  const std::vector<double>& speed_of_rank);

}  // namespace orrery
