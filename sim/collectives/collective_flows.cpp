#include "sim/collectives/collective_flows.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <unordered_set>

#include "sim/core/units.hpp"
#include "sim/plan/placement.hpp"
#include "sim/plan/rank_classes.hpp"

namespace orrery {
namespace {

int parent_in_first(int node, int nodes) {
  if (node == 0) return -1;
  const int bit = node & -node;
  const int up = (node ^ bit) | (bit << 1);
  return up < nodes ? up : node ^ bit;
}

}  // namespace

int tree_parent(int node, int nodes, bool second) {
  assert(0 <= node && node < nodes);
  if (!second) return parent_in_first(node, nodes);
  const bool mirrored = nodes % 2 == 0;
  const int as_first = mirrored ? nodes - 1 - node : (node + nodes - 1) % nodes;
  const int up = parent_in_first(as_first, nodes);
  if (up < 0) return -1;
  return mirrored ? nodes - 1 - up : (up + 1) % nodes;
}

namespace {

// Members in equally large domains are equivalent in a uniform exchange: no pair is visited.
std::vector<PortBytes> uniform_port_bytes(const Placement& placement,
                                          const std::vector<Rank>& group, Bytes a_pair) {
  std::vector<PortBytes> ports;
  for (std::size_t begin = 0; begin < group.size();) {
    std::size_t end = begin;
    while (end < group.size() && placement.same_domain(group[begin], group[end])) ++end;
    const Bytes inside = static_cast<double>(end - begin - 1) * a_pair;
    const Bytes outside = static_cast<double>(group.size() - (end - begin)) * a_pair;
    ports.insert(ports.end(), end - begin, {inside, inside, outside, outside});
    begin = end;
  }
  return ports;
}

// One flow for both directions if they carry as much: a class sends what its equivalents receive.
void add_port(const Topology& topology, const RankClasses& classes, int rep, bool same_domain,
              Bytes sent, Bytes received, BytesPerSecond rate, std::vector<Flow>& flows) {
  if (rate.si() <= 0.0) return;
  if (sent == received && sent.si() > 0.0)
    return flows.push_back({route(topology, classes, rep, rep, same_domain), sent, rate});
  if (sent.si() > 0.0)
    flows.push_back({route_out(topology, classes, rep, same_domain), sent, rate});
  if (received.si() > 0.0)
    flows.push_back({route_in(topology, classes, rep, same_domain), received, rate});
}

// Splits a flow into `parts` equal ones over the same links.
void split(Flow& flow, double parts) {
  flow.bytes = flow.bytes / parts;
  flow.rate = flow.rate / parts;
  for (LinkUse& use : flow.route) use.times *= static_cast<int>(std::lround(parts));
}

bool meet(const FlowRoute& one, const FlowRoute& other) {
  return std::any_of(one.begin(), one.end(), [&](const LinkUse& use) {
    return std::any_of(other.begin(), other.end(),
                       [&](const LinkUse& theirs) { return theirs.link == use.link; });
  });
}

std::vector<Flow> port_flows(const Topology& topology, const RankClasses& classes,
                             const std::vector<Rank>& group, const Exchange& exchange,
                             BytesPerSecond inside, BytesPerSecond outside) {
  const std::vector<PortBytes> ports = port_bytes(classes.placement(), group, exchange);
  const Bytes a_pair = exchange.between(0, exchange.members() - 1);
  std::vector<bool> simulated(classes.reps().size());
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const int rep = classes.rep_of(group[i]);
    if (simulated[at(rep)]) continue;
    simulated[at(rep)] = true;
    const PortBytes& own = ports[i];
    std::vector<Flow> near, far;
    add_port(topology, classes, rep, true, own.sent_inside, own.received_inside, inside, near);
    add_port(topology, classes, rep, false, own.sent_outside, own.received_outside, outside, far);
    // Both flows pass the GPU's slot in PCIe nodes, which pairs share one by one.
    if (exchange.is_uniform() && near.size() == 1 && far.size() == 1 &&
        meet(near.front().route, far.front().route)) {
      split(near.front(), own.sent_inside / a_pair);
      split(far.front(), own.sent_outside / a_pair);
    }
    flows.insert(flows.end(), near.begin(), near.end());
    flows.insert(flows.end(), far.begin(), far.end());
  }
  return flows;
}

}  // namespace

Exchange Exchange::uniform(int members, Bytes a_pair) { return {members, a_pair, {}}; }

Exchange Exchange::matrix(int members, std::vector<double> bytes) {
  assert(bytes.size() == at(members) * at(members) && !bytes.empty());
  return {members, Bytes{}, std::move(bytes)};
}

Bytes Exchange::between(int from, int to) const {
  if (from == to) return Bytes{};
  return is_uniform() ? a_pair_ : Bytes{bytes_[at(from) * at(members_) + at(to)]};
}

std::vector<PortBytes> port_bytes(const Placement& placement, const std::vector<Rank>& group,
                                  const Exchange& exchange) {
  assert(exchange.members() == static_cast<int>(group.size()));
  if (exchange.is_uniform())
    return uniform_port_bytes(placement, group, exchange.between(0, exchange.members() - 1));
  std::vector<PortBytes> ports(group.size());
  for (int i = 0; i < exchange.members(); ++i)
    for (int j = 0; j < exchange.members(); ++j) {
      const Bytes bytes = exchange.between(i, j);
      if (placement.same_domain(group[at(i)], group[at(j)])) {
        ports[at(i)].sent_inside += bytes;
        ports[at(j)].received_inside += bytes;
      } else {
        ports[at(i)].sent_outside += bytes;
        ports[at(j)].received_outside += bytes;
      }
    }
  return ports;
}

std::vector<Leg> legs_of(const Placement& placement, const std::vector<Rank>& group,
                         const Exchange& exchange, BytesPerSecond inside, BytesPerSecond outside) {
  const std::vector<PortBytes> ports = port_bytes(placement, group, exchange);
  std::vector<Leg> legs;
  for (int i = 0; i < exchange.members(); ++i)
    for (int j = 0; j < exchange.members(); ++j) {
      const Bytes bytes = exchange.between(i, j);
      const bool same = placement.same_domain(group[at(i)], group[at(j)]);
      const BytesPerSecond rate = same ? inside : outside;
      if (bytes.si() <= 0.0 || rate.si() <= 0.0) continue;
      const Bytes busier = same
                               ? std::max(ports[at(i)].sent_inside, ports[at(j)].received_inside)
                               : std::max(ports[at(i)].sent_outside, ports[at(j)].received_outside);
      legs.push_back({group[at(i)], group[at(j)], bytes, (bytes / busier) * rate, same});
    }
  return legs;
}

std::vector<Flow> exchange_flows(const Topology& topology, const RankClasses& classes,
                                 const std::vector<Rank>& group, const Exchange& exchange,
                                 BytesPerSecond inside, BytesPerSecond outside) {
  const bool all_ranks = static_cast<int>(classes.reps().size()) == classes.placement().ranks();
  if (classes.route_of(0, Traffic::tensor_inside) == nullptr && !all_ranks)
    return port_flows(topology, classes, group, exchange, inside, outside);
  // Every flow is simulated: every rank is its own class, or the group holds all ranks.
  assert(all_ranks || static_cast<int>(group.size()) == classes.placement().ranks());
  std::vector<Flow> flows;
  for (const Leg& leg : legs_of(classes.placement(), group, exchange, inside, outside)) {
    FlowRoute links;
    for (LinkId link : topology.route(leg.from, leg.to)) links.push_back({link, 1});
    flows.push_back({std::move(links), leg.bytes, leg.rate});
  }
  return flows;
}

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

std::vector<LinkId> route_of(const Topology& topology, const Leg& leg) {
  std::vector<LinkId> route = topology.route(leg.from, leg.to);
  if (leg.to_switches)
    route.erase(std::remove_if(route.begin(), route.end(),
                               [&](LinkId id) { return topology.link(id).node < 0; }),
                route.end());
  return route;
}

std::vector<Flow> flows_of(const Topology& topology, const std::vector<Leg>& legs) {
  std::vector<Flow> flows;
  flows.reserve(legs.size());
  for (const Leg& leg : legs) {
    Flow flow{{}, leg.bytes, leg.rate};
    for (LinkId id : route_of(topology, leg)) flow.route.push_back({id, 1});
    flows.push_back(std::move(flow));
  }
  return flows;
}

namespace {

// Bytes and rate of one member on its part of a ring.
struct Share {
  Bytes bytes;
  BytesPerSecond rate;

  bool empty() const { return bytes.si() <= 0.0; }
  Seconds time() const { return empty() ? Seconds{} : bytes / rate; }
};

}  // namespace

std::vector<int> reps_in(const RankClasses& classes, const std::vector<Rank>& group) {
  std::vector<int> reps;
  for (Rank rank : group) reps.push_back(classes.rep_of(rank));
  std::sort(reps.begin(), reps.end());
  reps.erase(std::unique(reps.begin(), reps.end()), reps.end());
  return reps;
}

std::vector<Flow> collective_flows(const Topology& topology, const RankClasses& classes,
                                   const std::vector<Rank>& group, const CollectiveCost& cost,
                                   Traffic inside_traffic, Traffic outside_traffic) {
  const std::vector<Ring> rings = rings_of(classes.placement(), group);
  Share inside{cost.scale_up_bytes, cost.scale_up_rate};
  const Share outside{cost.network_bytes, cost.network_rate};
  // The cost is that of the plan's most spread group. A group that happens to lie in one domain
  // keeps the others' pace, so it has the slower of the two flows, over the links that it has.
  if (rings.size() == 1 && rings.front().same_domain && outside.time() > inside.time())
    inside = outside;

  std::vector<Flow> flows;
  std::unordered_set<int> flow_classes;  // Classes of simulated flows, if routes are known.
  std::vector<bool> simulated[2] = {std::vector<bool>(classes.reps().size()),
                                    std::vector<bool>(classes.reps().size())};
  for (const Ring& ring : rings) {
    const Share& share = ring.same_domain ? inside : outside;
    if (share.empty()) continue;
    // Every rank of a ring sends once and receives once, and so must every class: of A A B only A
    // -> B -> A is simulated, of A A A only A -> A.
    std::vector<int> reps;
    for (Rank rank : ring.ranks) {
      const int rep = classes.rep_of(rank);
      if (simulated[ring.same_domain][static_cast<std::size_t>(rep)]) continue;
      simulated[ring.same_domain][static_cast<std::size_t>(rep)] = true;
      reps.push_back(rep);
    }
    for (std::size_t i = 0; i < reps.size(); ++i) {
      const ClassRoute* known =
          classes.route_of(reps[i], ring.same_domain ? inside_traffic : outside_traffic);
      if (known && !flow_classes.insert(known->flow_class).second) continue;
      flows.push_back(
          {known ? known->links
                 : route(topology, classes, reps[i], reps[(i + 1) % reps.size()], ring.same_domain),
           share.bytes, share.rate});
    }
  }
  return flows;
}

std::vector<Flow> collective_flows(const Topology& topology, const RankClasses& classes,
                                   Rank member, const GroupCollective& collective) {
  const GroupKind kind = collective.group;
  return collective_flows(topology, classes, classes.placement().group(kind, member),
                          collective.cost, traffic(kind, true), traffic(kind, false));
}

}  // namespace orrery
