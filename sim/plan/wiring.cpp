#include "sim/plan/wiring.hpp"

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

// The links of a role that lead out, or in, on a way to or from `other`.
void add_own(const Topology& topology, const Cast& cast, int role, Rank other, bool outward,
             Way& uses) {
  const Rank own = cast.roles()[static_cast<std::size_t>(role)].rank;
  for (LinkId id : outward ? topology.route(own, other) : topology.route(other, own)) {
    const Link& link = topology.link(id);
    if (leaves(link.kind) == outward) uses.push_back({id, link.is_nic() ? cast.sharers(role) : 1});
  }
}

Rank rank_of(const Cast& cast, int role) {
  return cast.roles()[static_cast<std::size_t>(role)].rank;
}

}  // namespace

Way way_out(const Topology& topology, const Cast& cast, int role, bool same_domain) {
  Way uses;
  const Rank other = counterpart(cast.placement(), rank_of(cast, role), same_domain);
  add_own(topology, cast, role, other, true, uses);
  return uses;
}

Way way_in(const Topology& topology, const Cast& cast, int role, bool same_domain) {
  Way uses;
  const Rank other = counterpart(cast.placement(), rank_of(cast, role), same_domain);
  add_own(topology, cast, role, other, false, uses);
  return uses;
}

Way way(const Topology& topology, const Cast& cast, int from_role, int to_role, bool same_domain) {
  const Placement& placement = cast.placement();
  const Rank from = rank_of(cast, from_role);
  const Rank to = rank_of(cast, to_role);
  // The two representatives may lie otherwise to each other than the ranks that they stand for.
  const bool adjacent = from != to && placement.same_domain(from, to) == same_domain;
  Way uses;
  add_own(topology, cast, from_role, adjacent ? to : counterpart(placement, from, same_domain),
          true, uses);
  add_own(topology, cast, to_role, adjacent ? from : counterpart(placement, to, same_domain), false,
          uses);
  return uses;
}

Way way(const Topology& topology, const Cast& cast, int from_role, Rank to) {
  const Rank from = rank_of(cast, from_role);
  return way(topology, cast, from_role, cast.role_of(to), cast.placement().same_domain(from, to));
}

}  // namespace orrery
