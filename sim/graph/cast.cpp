#include "sim/graph/cast.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <unordered_map>

namespace orrery {
namespace {

using Colour = std::uint64_t;
using Colours = std::vector<Colour>;

Colour mix(Colour seed, Colour value) {  // splitmix64's finaliser over a running sum.
  Colour z = seed * 0x9E3779B97F4A7C15u + value + 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// Colours of a group's members domain by domain: the order inside a domain and the order of the
// domains tell nobody apart.
Colour colour_of_group(const std::vector<Rank>& group, const Placement& placement,
                       const Colours& colours) {
  std::map<int, std::vector<Colour>> by_domain;
  for (Rank rank : group)
    by_domain[placement.domain(rank)].push_back(colours[static_cast<std::size_t>(rank.value)]);
  std::vector<Colour> domains;
  for (auto& [domain, members] : by_domain) {
    std::sort(members.begin(), members.end());
    Colour sum = members.size();
    for (Colour member : members) sum = mix(sum, member);
    domains.push_back(sum);
  }
  std::sort(domains.begin(), domains.end());
  Colour sum = domains.size();
  for (Colour domain : domains) sum = mix(sum, domain);
  return sum;
}

// How many of `group` share `rank`'s domain: decides how much of a collective its NIC carries.
Colour company(const std::vector<Rank>& group, Rank rank, const Placement& placement) {
  return static_cast<Colour>(std::count_if(group.begin(), group.end(), [&](Rank other) {
    return placement.same_domain(rank, other);
  }));
}

Colours refine_once(const Placement& placement, const Colours& old) {
  Colours colours(old.size());
  for (int s = 0; s < placement.pp(); ++s) {
    for (int d = 0; d < placement.dp(); ++d)
      for (int t = 0; t < placement.tp(); ++t) {
        const auto rank = static_cast<std::size_t>(placement.rank({s, d, t}).value);
        colours[rank] = mix(1, old[rank]);
      }
    const auto add_group = [&](const std::vector<Rank>& group) {
      const Colour colour = colour_of_group(group, placement, old);
      for (Rank rank : group) {
        Colour& own = colours[static_cast<std::size_t>(rank.value)];
        own = mix(mix(own, colour), company(group, rank, placement));
      }
    };
    for (int d = 0; d < placement.dp(); ++d) add_group(placement.tensor_group({s, d, 0}));
    for (int t = 0; t < placement.tp(); ++t) add_group(placement.data_group({s, 0, t}));
  }
  for (std::size_t r = 0; r < colours.size(); ++r) {
    const Rank rank{static_cast<int>(r)};
    Coordinates at = placement.coordinates(rank);
    for (int step : {-1, 2}) {  // Previous and next stage, around: the tied embedding closes a ring.
      at.stage = (at.stage + step + placement.pp()) % placement.pp();
      const Rank other = placement.rank(at);
      colours[r] = mix(mix(colours[r], old[static_cast<std::size_t>(other.value)]),
                       placement.same_domain(rank, other));
    }
  }
  return colours;
}

// GPUs on one NIC see each other.
void add_nic_mates(const Placement& placement, Colours& colours) {
  std::unordered_map<int, std::vector<Colour>> mates;
  for (std::size_t r = 0; r < colours.size(); ++r)
    mates[placement.nic(Rank{static_cast<int>(r)})].push_back(colours[r]);
  std::unordered_map<int, Colour> sums;
  for (auto& [nic, list] : mates) {
    std::sort(list.begin(), list.end());
    Colour sum = list.size();
    for (Colour mate : list) sum = mix(sum, mate);
    sums[nic] = sum;
  }
  for (std::size_t r = 0; r < colours.size(); ++r)
    colours[r] = mix(colours[r], sums[placement.nic(Rank{static_cast<int>(r)})]);
}

std::size_t distinct(Colours colours) {
  std::sort(colours.begin(), colours.end());
  return static_cast<std::size_t>(std::unique(colours.begin(), colours.end()) - colours.begin());
}

}  // namespace

Cast Cast::unfolded(const Placement& placement) {
  Cast cast{placement};
  for (int r = 0; r < placement.ranks(); ++r) {
    cast.roles_.push_back({Rank{r}, placement.coordinates(Rank{r}), 1});
    cast.role_of_rank_.push_back(r);
  }
  return cast;
}

Cast Cast::folded(const Placement& placement) {
  if (!placement.regular()) return refined(placement);
  Cast cast{placement};
  for (int stage = 0; stage < placement.pp(); ++stage)
    cast.roles_.push_back(
        {placement.rank({stage, 0, 0}), {stage, 0, 0}, placement.tp() * placement.dp()});
  return cast;
}

Cast Cast::refined(const Placement& placement) {
  Colours colours(static_cast<std::size_t>(placement.ranks()));
  for (std::size_t r = 0; r < colours.size(); ++r)
    colours[r] = mix(7, static_cast<Colour>(placement.coordinates(Rank{static_cast<int>(r)}).stage));
  for (std::size_t count = 0, next = distinct(colours); next > count;) {
    count = next;
    colours = refine_once(placement, colours);
    add_nic_mates(placement, colours);
    next = distinct(colours);
  }
  Cast cast{placement};
  std::unordered_map<Colour, int> role_of_colour;
  for (std::size_t r = 0; r < colours.size(); ++r) {
    const Rank rank{static_cast<int>(r)};
    const auto [found, is_new] =
        role_of_colour.try_emplace(colours[r], static_cast<int>(cast.roles_.size()));
    if (is_new) cast.roles_.push_back({rank, placement.coordinates(rank), 0});
    ++cast.roles_[static_cast<std::size_t>(found->second)].ranks;
    cast.role_of_rank_.push_back(found->second);
  }
  return cast;
}

int Cast::role_of(Rank rank) const {
  if (role_of_rank_.empty()) return placement_.coordinates(rank).stage;
  return role_of_rank_[static_cast<std::size_t>(rank.value)];
}

int Cast::sharers(int role) const {
  const Rank own = roles_[static_cast<std::size_t>(role)].rank;
  const int reach = placement_.gpus_per_nic();
  int count = 0;
  for (int r = std::max(0, own.value - reach); r <= own.value + reach && r < placement_.ranks(); ++r)
    if (placement_.nic(Rank{r}) == placement_.nic(own) && role_of(Rank{r}) == role) ++count;
  return count;
}

}  // namespace orrery
