#include "sim/plan/traffic.hpp"

#include "sim/plan/placement.hpp"

namespace orrery {
namespace {

void add_rings(const Placement& placement, const Group& group, int index,
               std::vector<RankFlow>& flows) {
  for (const Ring& ring : rings_of(placement, group.ranks))
    for (std::size_t i = 0; i < ring.ranks.size(); ++i)
      flows.push_back({traffic(group.kind, ring.same_domain), ring.ranks[i],
                       ring.ranks[(i + 1) % ring.ranks.size()], index});
}

}  // namespace

std::vector<Group> groups_of(const Placement& placement) {
  std::vector<Group> groups;
  for (GroupKind kind : placement.kinds())
    for (int s = 0; s < placement.pp(); ++s)
      for (std::vector<Rank>& ranks : placement.groups(kind, s))
        groups.push_back({kind, std::move(ranks)});
  return groups;
}

std::vector<RankFlow> traffic_of(const Placement& placement) {
  std::vector<RankFlow> flows;
  const std::vector<Group> groups = groups_of(placement);
  for (std::size_t g = 0; g < groups.size(); ++g)
    add_rings(placement, groups[g], static_cast<int>(g), flows);
  if (placement.pp() == 1) return flows;
  for (int r = 0; r < placement.ranks(); ++r) {
    // Around the pipeline: with virtual stages the last one feeds the first.
    Coordinates next = placement.coordinates(Rank{r});
    next.stage = (next.stage + 1) % placement.pp();
    flows.push_back({Traffic::forward, Rank{r}, placement.rank(next)});
    flows.push_back({Traffic::backward, placement.rank(next), Rank{r}});
    Coordinates at = placement.coordinates(Rank{r});
    if (placement.mirrored()) {
      Coordinates mirror = at;
      mirror.stage = placement.pp() - 1 - at.stage;
      flows.push_back({Traffic::mirror, Rank{r}, placement.rank(mirror)});
    }
    if (at.stage != 0) continue;
    at.stage = placement.pp() - 1;
    flows.push_back({Traffic::tied, Rank{r}, placement.rank(at)});
    flows.push_back({Traffic::tied, placement.rank(at), Rank{r}});
  }
  return flows;
}

}  // namespace orrery
