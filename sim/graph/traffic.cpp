#include "sim/graph/traffic.hpp"

#include "sim/graph/rings.hpp"

namespace orrery {
namespace {

void add_rings(const Placement& placement, const std::vector<Rank>& group, Traffic inside,
               Traffic outside, std::vector<RankFlow>& flows) {
  if (group.size() < 2) return;
  for (const Ring& ring : rings_of(placement, group))
    for (std::size_t i = 0; i < ring.ranks.size(); ++i)
      flows.push_back({ring.same_domain ? inside : outside, ring.ranks[i],
                       ring.ranks[(i + 1) % ring.ranks.size()]});
}

}  // namespace

std::vector<RankFlow> traffic_of(const Placement& placement) {
  std::vector<RankFlow> flows;
  for (GroupKind kind : placement.kinds())
    for (int s = 0; s < placement.pp(); ++s)
      for (const std::vector<Rank>& group : placement.groups(kind, s))
        add_rings(placement, group, traffic(kind, true), traffic(kind, false), flows);
  if (placement.pp() == 1) return flows;
  for (int r = 0; r < placement.ranks(); ++r) {
    // Around the pipeline: with virtual stages the last one feeds the first.
    Coordinates next = placement.coordinates(Rank{r});
    next.stage = (next.stage + 1) % placement.pp();
    flows.push_back({Traffic::forward, Rank{r}, placement.rank(next)});
    flows.push_back({Traffic::backward, placement.rank(next), Rank{r}});
    Coordinates at = placement.coordinates(Rank{r});
    if (at.stage != 0) continue;
    at.stage = placement.pp() - 1;
    flows.push_back({Traffic::tied, Rank{r}, placement.rank(at)});
    flows.push_back({Traffic::tied, placement.rank(at), Rank{r}});
  }
  return flows;
}

}  // namespace orrery
