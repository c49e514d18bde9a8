#pragma once

#include "sim/plan/rank_classes.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery {

/// four-by-four with other nodes: `gpus` GPUs and `nics` NICs each.
inline System nodes_of(int gpus, int nics) {
  System system = read_system("four-by-four", test_place);
  system.gpus_per_node = system.nvlink_domain = gpus;
  system.nics_per_node = nics;
  return system;
}

/// The coarsest equitable partition of equal GPUs, found by refinement.
inline RankClasses refined(const Placement& placement, const Topology& topology) {
  return RankClasses::folded_on(
      placement, topology, std::vector<double>(static_cast<std::size_t>(placement.ranks()), 1.0));
}

inline Placement placement_of(int tp, int dp, int pp, const System& system) {
  Plan plan;
  plan.tp = tp;
  plan.dp = dp;
  plan.pp = pp;
  return Placement{plan, system};
}

}  // namespace orrery
