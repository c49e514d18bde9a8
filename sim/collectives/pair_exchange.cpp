#include "sim/collectives/pair_exchange.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/core/index.hpp"
#include "sim/plan/wiring.hpp"

namespace orrery {
namespace {

// Of a uniform exchange, members that lie in equally large domains are alike: no pair is looked at.
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

// One flow for both directions where they carry as much: what a role sends, its twins receive.
void add_port(const Topology& topology, const Cast& cast, int role, bool same_domain, Bytes sent,
              Bytes received, BytesPerSecond rate, std::vector<Flow>& flows) {
  if (rate.si() <= 0.0) return;
  if (sent == received && sent.si() > 0.0)
    return flows.push_back({way(topology, cast, role, role, same_domain), sent, rate});
  if (sent.si() > 0.0) flows.push_back({way_out(topology, cast, role, same_domain), sent, rate});
  if (received.si() > 0.0)
    flows.push_back({way_in(topology, cast, role, same_domain), received, rate});
}

// A flow as so many equal ones: all of them where others meet it.
void split(Flow& flow, double parts) {
  flow.bytes = flow.bytes / parts;
  flow.rate = flow.rate / parts;
  for (LinkUse& use : flow.way) use.times *= static_cast<int>(std::lround(parts));
}

bool meet(const Way& one, const Way& other) {
  return std::any_of(one.begin(), one.end(), [&](const LinkUse& use) {
    return std::any_of(other.begin(), other.end(),
                       [&](const LinkUse& theirs) { return theirs.link == use.link; });
  });
}

std::vector<Flow> port_flows(const Topology& topology, const Cast& cast,
                             const std::vector<Rank>& group, const Exchange& exchange,
                             BytesPerSecond inside, BytesPerSecond outside) {
  const std::vector<PortBytes> ports = port_bytes(cast.placement(), group, exchange);
  const Bytes a_pair = exchange.between(0, exchange.members() - 1);
  std::vector<bool> drawn(cast.roles().size());
  std::vector<Flow> flows;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const int role = cast.role_of(group[i]);
    if (drawn[at(role)]) continue;
    drawn[at(role)] = true;
    const PortBytes& own = ports[i];
    std::vector<Flow> near, far;
    add_port(topology, cast, role, true, own.sent_inside, own.received_inside, inside, near);
    add_port(topology, cast, role, false, own.sent_outside, own.received_outside, outside, far);
    // In PCIe nodes both pass the GPU's slot, which pairs share one by one.
    if (exchange.is_uniform() && near.size() == 1 && far.size() == 1 &&
        meet(near.front().way, far.front().way)) {
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

std::vector<Flow> exchange_flows(const Topology& topology, const Cast& cast,
                                 const std::vector<Rank>& group, const Exchange& exchange,
                                 BytesPerSecond inside, BytesPerSecond outside) {
  const bool everyone = static_cast<int>(cast.roles().size()) == cast.placement().ranks();
  if (cast.way_of(0, Traffic::tensor_inside) == nullptr && !everyone)
    return port_flows(topology, cast, group, exchange, inside, outside);
  // Every flow is drawn where nobody stands for others, or where the group is everyone.
  assert(everyone || static_cast<int>(group.size()) == cast.placement().ranks());
  std::vector<Flow> flows;
  for (const Leg& leg : legs_of(cast.placement(), group, exchange, inside, outside)) {
    Way links;
    for (LinkId link : topology.route(leg.from, leg.to)) links.push_back({link, 1});
    flows.push_back({std::move(links), leg.bytes, leg.rate});
  }
  return flows;
}

}  // namespace orrery
