#include "sim/collectives/group_flows.hpp"

#include <algorithm>
#include <unordered_set>

#include "sim/plan/rings.hpp"
#include "sim/plan/wiring.hpp"

namespace orrery {
namespace {

// What one member sends over its part of a ring.
struct Share {
  Bytes bytes;
  BytesPerSecond rate;

  bool empty() const { return bytes.si() <= 0.0; }
  Seconds time() const { return empty() ? Seconds{} : bytes / rate; }
};

}  // namespace

std::vector<int> roles_in(const Cast& cast, const std::vector<Rank>& group) {
  std::vector<int> roles;
  for (Rank rank : group) roles.push_back(cast.role_of(rank));
  std::sort(roles.begin(), roles.end());
  roles.erase(std::unique(roles.begin(), roles.end()), roles.end());
  return roles;
}

std::vector<Flow> collective_flows(const Topology& topology, const Cast& cast,
                                   const std::vector<Rank>& group, const CollectiveCost& cost,
                                   Traffic inside_traffic, Traffic outside_traffic) {
  const std::vector<Ring> rings = rings_of(cast.placement(), group);
  Share inside{cost.scale_up_bytes, cost.scale_up_rate};
  const Share outside{cost.network_bytes, cost.network_rate};
  // The price is that of the plan's most spread group. A group that happens to lie in one domain
  // keeps the others' pace, so it has the slower of the two flows, over the links that it has.
  if (rings.size() == 1 && rings.front().same_domain && outside.time() > inside.time())
    inside = outside;

  std::vector<Flow> flows;
  std::unordered_set<int> classes;  // Of flows that are drawn, where the cast knows ways.
  std::vector<bool> drawn[2] = {std::vector<bool>(cast.roles().size()),
                                std::vector<bool>(cast.roles().size())};
  for (const Ring& ring : rings) {
    const Share& share = ring.same_domain ? inside : outside;
    if (share.empty()) continue;
    // Every rank of a ring sends once and receives once, and so must every role: of A A B only
    // A -> B -> A is drawn, of A A A only A -> A.
    std::vector<int> roles;
    for (Rank rank : ring.ranks) {
      const int role = cast.role_of(rank);
      if (drawn[ring.same_domain][static_cast<std::size_t>(role)]) continue;
      drawn[ring.same_domain][static_cast<std::size_t>(role)] = true;
      roles.push_back(role);
    }
    for (std::size_t i = 0; i < roles.size(); ++i) {
      const RoleWay* known =
          cast.way_of(roles[i], ring.same_domain ? inside_traffic : outside_traffic);
      if (known && !classes.insert(known->flow_class).second) continue;
      flows.push_back(
          {known ? known->links
                 : way(topology, cast, roles[i], roles[(i + 1) % roles.size()], ring.same_domain),
           share.bytes, share.rate});
    }
  }
  return flows;
}

std::vector<Flow> collective_flows(const Topology& topology, const Cast& cast, Rank member,
                                   const GroupCollective& collective) {
  const GroupKind kind = collective.group;
  return collective_flows(topology, cast, cast.placement().group(kind, member), collective.cost,
                          traffic(kind, true), traffic(kind, false));
}

}  // namespace orrery
