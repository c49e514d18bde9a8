#include "sim/plan/hops.hpp"

#include <algorithm>

#include "sim/plan/rings.hpp"
#include "sim/plan/traffic.hpp"

namespace orrery {

Seconds further_switches(const Placement& placement, const Topology& topology,
                         const std::vector<Rank>& group) {
  if (group.size() < 2) return {};
  Seconds slowest;
  for (const Ring& ring : rings_of(placement, group)) {
    if (ring.same_domain) continue;
    const std::size_t count = ring.ranks.size();
    Seconds sum;
    Seconds shortest;
    for (std::size_t i = 0; i < count; ++i) {
      const Seconds hop = topology.further_switches(ring.ranks[i], ring.ranks[(i + 1) % count]);
      shortest = i == 0 ? hop : std::min(shortest, hop);
      sum += hop;
    }
    slowest = std::max(slowest, (sum - shortest) / static_cast<double>(count - 1));
  }
  return slowest;
}

GroupShape pair_shape(const Placement& placement, const Topology& topology, Rank a, Rank b) {
  const bool inside = placement.same_domain(a, b);
  return {2, inside ? 1 : 2, inside ? 2 : 1, topology.further_switches(a, b)};
}

GroupShapes shapes_on(const System& system, const Placement& placement, const Topology& topology) {
  GroupShapes shapes = placement.shapes();
  if (system.uniform()) return shapes;  // One switch.
  for (const Group& group : groups_of(placement)) {
    Seconds& slowest = shapes[group.kind].further_switches;
    slowest = std::max(slowest, further_switches(placement, topology, group.ranks));
  }
  std::vector<Rank> replica;
  for (int stage = 0; stage < placement.pp(); ++stage)
    for (const Rank rank : placement.group(GroupKind::tensor, Coordinates{.stage = stage}))
      replica.push_back(rank);
  shapes.model.further_switches = further_switches(placement, topology, replica);
  return shapes;
}

}  // namespace orrery
