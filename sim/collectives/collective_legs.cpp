#include "sim/collectives/collective_legs.hpp"

#include <algorithm>

#include "sim/collectives/double_tree.hpp"
#include "sim/plan/rings.hpp"

namespace orrery {
namespace {

void add_ring(const Ring& ring, Bytes bytes, BytesPerSecond rate, bool to_switches,
              std::vector<Leg>& legs) {
  if (bytes.si() <= 0.0) return;
  for (std::size_t i = 0; i < ring.ranks.size(); ++i)
    legs.push_back({ring.ranks[i], ring.ranks[(i + 1) % ring.ranks.size()], bytes, rate,
                    ring.same_domain, to_switches});
}

// Half of the tensor climbs each of the two trees and comes down again.
void add_double_tree(const std::vector<Rank>& nodes, Bytes bytes, BytesPerSecond rate,
                     std::vector<Leg>& legs) {
  const int count = static_cast<int>(nodes.size());
  std::vector<std::pair<int, int>> edges;
  std::vector<int> sends(nodes.size(), 0);
  for (const bool second : {false, true})
    for (int node = 0; node < count; ++node) {
      const int up = tree_parent(node, count, second);
      if (up < 0) continue;
      for (const auto& edge : {std::pair{node, up}, std::pair{up, node}}) {
        edges.push_back(edge);
        ++sends[static_cast<std::size_t>(edge.first)];
      }
    }
  const double busiest = *std::max_element(sends.begin(), sends.end());
  for (const auto& [from, to] : edges)
    legs.push_back({nodes[static_cast<std::size_t>(from)], nodes[static_cast<std::size_t>(to)],
                    bytes / busiest, rate / busiest, false, false});
}

std::vector<Leg> shift(const Placement& placement, const std::vector<Rank>& group,
                       const CollectiveCost& cost) {
  std::vector<Leg> legs;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const Rank next = group[(i + 1) % group.size()];
    const bool same = placement.same_domain(group[i], next);
    const Bytes bytes = same ? cost.scale_up_bytes : cost.network_bytes;
    if (bytes.si() > 0.0)
      legs.push_back(
          {group[i], next, bytes, same ? cost.scale_up_rate : cost.network_rate, same, false});
  }
  return legs;
}

}  // namespace

std::vector<Leg> legs_of(const Placement& placement, const std::vector<Rank>& group,
                         const CollectiveCost& cost) {
  if (cost.pattern == CollectivePattern::pairs)
    return legs_of(placement, group, exchange_of(placement, group, cost), cost.scale_up_rate,
                   cost.network_rate);
  if (cost.pattern == CollectivePattern::shift) return shift(placement, group, cost);
  std::vector<Leg> legs;
  for (const Ring& ring : rings_of(placement, group)) {
    if (ring.same_domain)
      add_ring(ring, cost.scale_up_bytes, cost.scale_up_rate, false, legs);
    else if (cost.pattern == CollectivePattern::tree && cost.network_bytes.si() > 0.0)
      add_double_tree(ring.ranks, cost.network_bytes, cost.network_rate, legs);
    else
      add_ring(ring, cost.network_bytes, cost.network_rate,
               cost.pattern == CollectivePattern::switches, legs);
  }
  return legs;
}

Exchange exchange_of(const Placement& placement, const std::vector<Rank>& group,
                     const CollectiveCost& cost) {
  int fewest = static_cast<int>(group.size());
  for (std::size_t begin = 0, end = 0; begin < group.size(); begin = end) {
    while (end < group.size() && placement.same_domain(group[begin], group[end])) ++end;
    fewest = std::min(fewest, static_cast<int>(end - begin));
  }
  const int members = static_cast<int>(group.size());
  const bool leaves = cost.network_bytes.si() > 0.0;
  return Exchange::uniform(members, leaves ? cost.network_bytes / (members - fewest)
                                           : cost.scale_up_bytes / (members - 1));
}

std::vector<LinkId> way_of(const Topology& topology, const Leg& leg) {
  std::vector<LinkId> way = topology.route(leg.from, leg.to);
  if (leg.to_switches)
    way.erase(std::remove_if(way.begin(), way.end(),
                             [&](LinkId id) { return topology.link(id).node < 0; }),
              way.end());
  return way;
}

std::vector<Flow> flows_of(const Topology& topology, const std::vector<Leg>& legs) {
  std::vector<Flow> flows;
  flows.reserve(legs.size());
  for (const Leg& leg : legs) {
    Flow flow{{}, leg.bytes, leg.rate};
    for (LinkId id : way_of(topology, leg)) flow.way.push_back({id, 1});
    flows.push_back(std::move(flow));
  }
  return flows;
}

}  // namespace orrery
