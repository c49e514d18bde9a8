#pragma once

#include <string>
#include <vector>

#include "sim/cluster/system.hpp"

namespace orrery {

/// Nodes of four GPUs and four NICs of 1 GB/s, efficiency 1, with a fabric of small round numbers:
/// every switch after the first adds 1 us.
inline System fabric_system(FabricLayout layout) {
  System system = read_system("four-by-four", {"test", ""});
  system.shape.layout = layout;
  system.shape.switch_latency = microseconds(1.0);
  return system;
}

inline System leaf_spine(int nodes_per_leaf, int spines, double uplink) {
  System system = fabric_system(FabricLayout::leaf_spine);
  system.shape.nodes_per_leaf = nodes_per_leaf;
  system.shape.spines = spines;
  system.shape.uplink = BytesPerSecond{uplink};
  return system;
}

inline System rail_optimized(int nodes_per_pod, int spines, double uplink) {
  System system = leaf_spine(nodes_per_pod, spines, uplink);
  system.shape.layout = FabricLayout::rail_optimized;
  system.shape.rails = true;
  return system;
}

inline System fat_tree(int nodes_per_leaf, int leaves_per_pod, int spines, int cores, double uplink,
                       double core_uplink) {
  System system = leaf_spine(nodes_per_leaf, spines, uplink);
  system.shape.layout = FabricLayout::fat_tree;
  system.shape.leaves_per_pod = leaves_per_pod;
  system.shape.cores = cores;
  system.shape.core_uplink = BytesPerSecond{core_uplink};
  return system;
}

inline System dragonfly(int nodes_per_router, int routers, int groups, int global_links,
                        double local, double global) {
  System system = fabric_system(FabricLayout::dragonfly);
  system.shape.nodes_per_leaf = nodes_per_router;
  system.shape.routers_per_group = routers;
  system.shape.groups = groups;
  system.shape.global_links = global_links;
  system.shape.local_link = BytesPerSecond{local};
  system.shape.global_link = BytesPerSecond{global};
  return system;
}

/// A ring of so many switches, one node on each.
inline System ring_of_switches(int switches, double rate) {
  System system = fabric_system(FabricLayout::explicit_links);
  const auto name = [&](int i) { return "s" + std::to_string(i % switches); };
  for (int i = 0; i < switches; ++i) {
    system.shape.switches.push_back(name(i));
    system.shape.links.push_back({name(i), name(i + 1), BytesPerSecond{rate}, microseconds(1.0)});
    for (int nic = 0; nic < 4; ++nic) system.shape.ports.push_back({i, nic, i});
  }
  return system;
}

inline System with_down(System system, const std::string& link) {
  LinkOverride change;
  change.link = link;
  change.down = true;
  change.place = {"test", "/overrides"};
  system.link_overrides.push_back(change);
  return system;
}

}  // namespace orrery
