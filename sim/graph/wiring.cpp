#include "sim/graph/wiring.hpp"

namespace orrery {
namespace {

bool leaves(LinkKind kind) {
  return kind == LinkKind::nvlink_up || kind == LinkKind::pcie_up || kind == LinkKind::nic_up;
}

// Some rank that lies to `rank` as the sender of the flow does: in its domain, or outside it.
Rank counterpart(const Placement& placement, Rank rank, bool same_domain) {
  for (int step = 1;; ++step)
    for (int other : {rank.value - step, rank.value + step})
      if (other >= 0 && other < placement.ranks() &&
          placement.same_domain(rank, Rank{other}) == same_domain)
        return Rank{other};
}

}  // namespace

std::vector<LinkUse> way(Topology& topology, const Cast& cast, int from_role, Rank to) {
  const Placement& placement = cast.placement();
  const Rank from = cast.roles()[static_cast<std::size_t>(from_role)].rank;
  const int to_role = cast.role_of(to);
  const Rank receiver = cast.roles()[static_cast<std::size_t>(to_role)].rank;
  const bool same_domain = placement.same_domain(from, to);

  std::vector<LinkUse> uses;
  const auto add = [&](const std::vector<LinkId>& route, bool outward, int role) {
    for (LinkId id : route) {
      const Link& link = topology.link(id);
      if (leaves(link.kind) == outward)
        uses.push_back({id, link.is_nic() ? cast.sharers(role) : 1});
    }
  };
  add(topology.route(from, to), true, from_role);
  const Rank sender = receiver == to ? from : counterpart(placement, receiver, same_domain);
  add(topology.route(sender, receiver), false, to_role);
  return uses;
}

}  // namespace orrery
