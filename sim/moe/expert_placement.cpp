#include "sim/moe/expert_placement.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace orrery {
namespace {

// Items into `packs` of equal size, the heaviest first, each into the lightest pack with room. Ties
// go to the lower index, so that the answer is one.
std::vector<std::vector<int>> pack(std::span<const double> weights, int packs) {
  const std::size_t room = weights.size() / static_cast<std::size_t>(packs);
  std::vector<int> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    return weights[static_cast<std::size_t>(a)] > weights[static_cast<std::size_t>(b)];
  });
  std::vector<std::vector<int>> packed(static_cast<std::size_t>(packs));
  std::vector<double> sum(static_cast<std::size_t>(packs), 0.0);
  for (const int item : order) {
    std::size_t best = packed.size();
    for (std::size_t i = 0; i < packed.size(); ++i)
      if (packed[i].size() < room && (best == packed.size() || sum[i] < sum[best])) best = i;
    packed[best].push_back(item);
    sum[best] += weights[static_cast<std::size_t>(item)];
  }
  for (auto& items : packed) std::sort(items.begin(), items.end());
  return packed;
}

// The experts `members` on `ranks` ranks with `redundant` copies more: appends the ranks' slots.
void place(std::span<const double> loads, const std::vector<int>& members, int ranks, int redundant,
           std::vector<int>& expert_of) {
  const auto load = [&](std::size_t i) { return loads[static_cast<std::size_t>(members[i])]; };
  std::vector<int> copies(members.size(), 1);
  for (int copy = 0; copy < redundant; ++copy) {
    std::size_t hottest = 0;
    for (std::size_t i = 1; i < members.size(); ++i)
      if (load(i) / copies[i] > load(hottest) / copies[hottest]) hottest = i;
    ++copies[hottest];
  }
  std::vector<double> weights;
  std::vector<int> expert;
  for (std::size_t i = 0; i < members.size(); ++i)
    for (int copy = 0; copy < copies[i]; ++copy) {
      weights.push_back(load(i) / copies[i]);
      expert.push_back(members[i]);
    }
  for (const auto& slots : pack(weights, ranks))
    for (const int slot : slots) expert_of.push_back(expert[static_cast<std::size_t>(slot)]);
}

}  // namespace

std::vector<int> ExpertPlacement::copies(int experts) const {
  std::vector<int> count(static_cast<std::size_t>(experts), 0);
  for (const int expert : expert_of) ++count[static_cast<std::size_t>(expert)];
  return count;
}

ExpertPlacement contiguous_placement(int experts, int ranks) {
  assert(ranks > 0 && experts % ranks == 0);
  ExpertPlacement placement{ranks, std::vector<int>(static_cast<std::size_t>(experts))};
  std::iota(placement.expert_of.begin(), placement.expert_of.end(), 0);
  return placement;
}

ExpertPlacement balanced_placement(std::span<const double> loads, int ranks, int redundant,
                                   int groups, int domains) {
  const int experts = static_cast<int>(loads.size());
  assert((experts + redundant) % ranks == 0 && experts % groups == 0);
  assert(ranks % domains == 0 && groups % domains == 0 && redundant % domains == 0);
  const int size = experts / groups;
  std::vector<double> group_loads(static_cast<std::size_t>(groups), 0.0);
  for (int e = 0; e < experts; ++e)
    group_loads[static_cast<std::size_t>(e / size)] += loads[static_cast<std::size_t>(e)];

  ExpertPlacement placement{ranks, {}};
  for (const auto& of_domain : pack(group_loads, domains)) {
    std::vector<int> members;
    for (const int group : of_domain)
      for (int e = group * size; e < (group + 1) * size; ++e) members.push_back(e);
    place(loads, members, ranks / domains, redundant / domains, placement.expert_of);
  }
  return placement;
}

std::vector<double> rank_loads(const ExpertPlacement& placement, std::span<const double> loads) {
  const std::vector<int> copies = placement.copies(static_cast<int>(loads.size()));
  std::vector<double> load(static_cast<std::size_t>(placement.ranks), 0.0);
  for (std::size_t slot = 0; slot < placement.expert_of.size(); ++slot) {
    const auto expert = static_cast<std::size_t>(placement.expert_of[slot]);
    load[static_cast<std::size_t>(placement.rank_of(slot))] += loads[expert] / copies[expert];
  }
  return load;
}

double imbalance(std::span<const double> loads) {
  double sum = 0.0, most = 0.0;
  for (const double load : loads) sum += load, most = std::max(most, load);
  return sum > 0.0 ? most * static_cast<double>(loads.size()) / sum : 1.0;
}

}  // namespace orrery
