#include "sim/graph/wiring.hpp"

namespace orrery {
namespace {

bool leaves(LinkKind kind) {
  return kind == LinkKind::nvlink_up || kind == LinkKind::pcie_up || kind == LinkKind::nic_up;
}

// Some rank that lies to `rank` as the other end of the flow does: in its domain, or outside it.
Rank counterpart(const Placement& placement, Rank rank, bool same_domain) {
  for (int step = 1;; ++step)
    for (int other : {rank.value - step, rank.value + step})
      if (other >= 0 && other < placement.ranks() &&
          placement.same_domain(rank, Rank{other}) == same_domain)
        return Rank{other};
}

}  // namespace

std::vector<LinkUse> way(Topology& topology, const Cast& cast, int from_role, int to_role,
                         bool same_domain) {
  const Placement& placement = cast.placement();
  const Rank from = cast.roles()[static_cast<std::size_t>(from_role)].rank;
  const Rank to = cast.roles()[static_cast<std::size_t>(to_role)].rank;
  // The two representatives may lie otherwise to each other than the ranks that they stand for.
  const bool adjacent = from != to && placement.same_domain(from, to) == same_domain;

  std::vector<LinkUse> uses;
  const auto add = [&](const std::vector<LinkId>& route, bool outward, int role) {
    for (LinkId id : route) {
      const Link& link = topology.link(id);
      if (leaves(link.kind) == outward)
        uses.push_back({id, link.is_nic() ? cast.sharers(role) : 1});
    }
  };
  const auto other_end = [&](Rank rank, Rank other) {
    return adjacent ? other : counterpart(placement, rank, same_domain);
  };
  add(topology.route(from, other_end(from, to)), true, from_role);
  add(topology.route(other_end(to, from), to), false, to_role);
  return uses;
}

std::vector<LinkUse> way(Topology& topology, const Cast& cast, int from_role, Rank to) {
  const Rank from = cast.roles()[static_cast<std::size_t>(from_role)].rank;
  return way(topology, cast, from_role, cast.role_of(to), cast.placement().same_domain(from, to));
}

}  // namespace orrery
