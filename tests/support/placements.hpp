#pragma once

#include "sim/graph/placement.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery {

/// four-by-four with other nodes: `gpus` GPUs and `nics` NICs each.
inline System nodes_of(int gpus, int nics) {
  System system = read_system("four-by-four", test_place);
  system.gpus_per_node = system.nvlink_domain = gpus;
  system.nics_per_node = nics;
  return system;
}

inline Placement placement_of(int tp, int dp, int pp, const System& system) {
  Plan plan;
  plan.tp = tp;
  plan.dp = dp;
  plan.pp = pp;
  return Placement{plan, system};
}

}  // namespace orrery
