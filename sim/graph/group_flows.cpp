#include "sim/graph/group_flows.hpp"

#include <algorithm>

namespace orrery {
namespace {

using Ranks = std::vector<Rank>;

// The group's members domain by domain.
std::vector<Ranks> by_domain(const Placement& placement, const Ranks& group) {
  std::vector<Ranks> domains;
  for (Rank rank : group) {
    if (domains.empty() || !placement.same_domain(domains.back().front(), rank))
      domains.emplace_back();
    domains.back().push_back(rank);
  }
  return domains;
}

}  // namespace

std::vector<int> roles_in(const Cast& cast, const Ranks& group) {
  std::vector<int> roles;
  for (Rank rank : group) roles.push_back(cast.role_of(rank));
  std::sort(roles.begin(), roles.end());
  roles.erase(std::unique(roles.begin(), roles.end()), roles.end());
  return roles;
}

std::vector<Flow> collective_flows(Topology& topology, const Cast& cast, const Ranks& group,
                                   const CollectiveCost& cost) {
  const std::vector<Ranks> domains = by_domain(cast.placement(), group);
  std::vector<Flow> flows;
  std::vector<bool> drawn(cast.roles().size(), false);
  for (std::size_t d = 0; d < domains.size(); ++d)
    for (std::size_t i = 0; i < domains[d].size(); ++i) {
      const int role = cast.role_of(domains[d][i]);
      if (drawn[static_cast<std::size_t>(role)]) continue;
      drawn[static_cast<std::size_t>(role)] = true;
      const Ranks& own = domains[d];
      const Ranks& next = domains[(d + 1) % domains.size()];
      if (cost.scale_up_bytes.si() > 0.0 && own.size() > 1)
        flows.push_back({way(topology, cast, role, own[(i + 1) % own.size()]), cost.scale_up_bytes,
                         cost.scale_up_rate});
      if (cost.network_bytes.si() > 0.0 && domains.size() > 1)
        flows.push_back({way(topology, cast, role, next[i % next.size()]), cost.network_bytes,
                         cost.network_rate});
    }
  return flows;
}

}  // namespace orrery
