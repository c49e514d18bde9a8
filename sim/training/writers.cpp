#include "sim/training/writers.hpp"

#include <algorithm>
#include <limits>
#include <map>

namespace orrery {
namespace {

bool writes(const CheckpointWrite& write, const Coordinates& at) {
  if (write.of_rank[static_cast<std::size_t>(at.stage)] <= Bytes{}) return false;
  return write.every_replica || (at.data == 0 && at.context == 0);
}

// The NIC, or of a class of NICs that a role's traffic crosses the one that is drawn.
std::optional<LinkId> nic_of(const Topology& topology, const Cast& cast, int role, Rank writer,
                             bool outward) {
  const LinkKind kind = outward ? LinkKind::nic_up : LinkKind::nic_down;
  for (int k = 0; k < traffic_kinds; ++k)
    if (const RoleWay* known = cast.way_of(role, static_cast<Traffic>(k)))
      for (const LinkUse& use : known->links)
        if (topology.link(use.link).kind == kind) return use.link;
  return topology.nic_of(writer, outward);
}

}  // namespace

std::vector<Writer> writers_of(const CheckpointWrite& write, const Cast& cast, Topology& topology) {
  const Placement& placement = cast.placement();
  const std::size_t roles = cast.roles().size();
  std::vector<int> count(roles, 0);
  std::vector<Rank> first(roles);
  std::map<std::pair<int, int>, int> on_nic;  // Writers of a role.
  for (int r = 0; r < placement.ranks(); ++r) {
    const Rank rank{r};
    if (!writes(write, placement.coordinates(rank))) continue;
    const auto role = static_cast<std::size_t>(cast.role_of(rank));
    if (count[role]++ == 0) first[role] = rank;
    ++on_nic[{static_cast<int>(role), placement.nic(rank)}];
  }
  std::optional<LinkId> port;
  if (write.store) port = topology.add_port(*write.store);
  std::vector<Writer> writers;
  for (std::size_t i = 0; i < roles; ++i) {
    if (count[i] == 0) continue;
    const int role = static_cast<int>(i);
    const int sharers = on_nic[{role, placement.nic(first[i])}];
    Flow flow;
    flow.bytes = write.of_rank[static_cast<std::size_t>(placement.coordinates(first[i]).stage)];
    flow.rate = write.off_rank;
    if (const auto out = nic_of(topology, cast, role, first[i], true))
      flow.way.push_back({*out, sharers});
    if (port)
      flow.way.push_back({*port, count[i]});
    else if (const auto in = nic_of(topology, cast, role, first[i], false))
      flow.way.push_back({*in, sharers});
    writers.push_back({role, count[i], std::move(flow)});
  }
  return writers;
}

std::vector<double> shared_rates(const std::vector<const Flow*>& flows, const Topology& topology) {
  struct Filling {
    double unused = 0.0;
    int rising = 0;
  };
  std::map<int, Filling> links;
  for (const Flow* flow : flows)
    for (const LinkUse& use : flow->way) {
      Filling& link = links[use.link.value];
      link.unused = topology.link(use.link).capacity.si();
      link.rising += use.times;
    }
  constexpr double as_full = 1.0 + 1e-12;
  std::vector<double> rates(flows.size(), -1.0);
  for (std::size_t risen = 0; risen < flows.size();) {
    double level = std::numeric_limits<double>::infinity();
    for (const auto& [id, link] : links)
      if (link.rising > 0) level = std::min(level, link.unused / link.rising);
    for (std::size_t i = 0; i < flows.size(); ++i)
      if (rates[i] < 0.0) level = std::min(level, flows[i]->rate.si());
    std::vector<std::size_t> full;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      if (rates[i] >= 0.0) continue;
      const auto at_a_full_link = [&](const LinkUse& use) {
        const Filling& link = links[use.link.value];
        return link.unused <= level * as_full * link.rising;
      };
      if (flows[i]->rate.si() <= level * as_full ||
          std::any_of(flows[i]->way.begin(), flows[i]->way.end(), at_a_full_link))
        full.push_back(i);
    }
    for (const std::size_t i : full) {
      rates[i] = level;
      for (const LinkUse& use : flows[i]->way) {
        Filling& link = links[use.link.value];
        link.unused -= level * use.times;
        link.rising -= use.times;
      }
    }
    risen += full.size();
  }
  return rates;
}

}  // namespace orrery
