#include "sim/moe/expert_placement.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <string>

namespace orrery {
namespace {

// Puts items into `packs` of equal size, the heaviest first, each into the lightest pack that is
// not full. Ties go to the lower index, so that the result is unique.
std::vector<std::vector<int>> pack(std::span<const double> weights, int packs) {
  const std::size_t capacity = weights.size() / static_cast<std::size_t>(packs);
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
      if (packed[i].size() < capacity && (best == packed.size() || sum[i] < sum[best])) best = i;
    packed[best].push_back(item);
    sum[best] += weights[static_cast<std::size_t>(item)];
  }
  for (auto& items : packed) std::sort(items.begin(), items.end());
  return packed;
}

// Places the experts `members` and `redundant` copies on `ranks` ranks; appends the slots.
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

namespace {

void check(const RoutingTrace& trace, const PlacementRequest& request, const Place& at) {
  const auto divides = [&](int all, int parts, const char* key, const std::string& problem) {
    if (all % parts != 0) fail_infeasible(at / key, problem, "take numbers that divide");
  };
  const std::string on = " on " + std::to_string(request.ranks) + " ranks";
  divides(trace.experts, request.ranks, "ep", std::to_string(trace.experts) + " experts" + on);
  divides(request.redundant, request.ranks, "redundant",
          std::to_string(request.redundant) + " redundant experts" + on);
  divides(
      trace.experts, request.groups, "groups",
      std::to_string(trace.experts) + " experts in " + std::to_string(request.groups) + " groups");
  const std::string nodes = " on " + std::to_string(request.nodes) + " nodes";
  divides(request.ranks, request.nodes, "nodes", std::to_string(request.ranks) + " ranks" + nodes);
  divides(request.groups, request.nodes, "nodes",
          std::to_string(request.groups) + " groups of experts" + nodes);
  divides(request.redundant, request.nodes, "nodes",
          std::to_string(request.redundant) + " redundant experts" + nodes);
}

std::vector<double> loads_in(const RoutingTrace& trace, int layer, int micro_batch) {
  std::vector<double> loads(static_cast<std::size_t>(trace.experts), 0.0);
  for (int rank = 0; rank < trace.ranks; ++rank) {
    const auto row = trace.of(layer, micro_batch, rank);
    for (std::size_t e = 0; e < row.size(); ++e) loads[e] += row[e];
  }
  return loads;
}

double mean_of(const PlacementGain& gain, double PlacementGain::Layer::*figure) {
  double sum = 0.0;
  for (const PlacementGain::Layer& layer : gain.layers) sum += layer.*figure;
  return sum / static_cast<double>(gain.layers.size());
}

}  // namespace

double PlacementGain::before() const { return mean_of(*this, &Layer::before); }
double PlacementGain::after() const { return mean_of(*this, &Layer::after); }

double PlacementGain::speedup() const {
  const double after = mean_of(*this, &Layer::busiest_after);
  return after > 0.0 ? mean_of(*this, &Layer::busiest_before) / after : 1.0;
}

PlacementGain place_experts(const RoutingTrace& trace, const PlacementRequest& request,
                            const Place& at) {
  check(trace, request, at);
  const ExpertPlacement contiguous = contiguous_placement(trace.experts, request.ranks);
  PlacementGain gain;
  for (int layer = 0; layer < trace.layers; ++layer) {
    PlacementGain::Layer placed;
    placed.placement = balanced_placement(trace.totals(layer), request.ranks, request.redundant,
                                          request.groups, request.nodes);
    placed.before = placed.after = 0.0;
    for (int micro_batch = 0; micro_batch < trace.micro_batches; ++micro_batch) {
      const std::vector<double> loads = loads_in(trace, layer, micro_batch);
      const std::vector<double> before = rank_loads(contiguous, loads);
      const std::vector<double> after = rank_loads(placed.placement, loads);
      placed.before += imbalance(before) / trace.micro_batches;
      placed.after += imbalance(after) / trace.micro_batches;
      placed.busiest_before += *std::max_element(before.begin(), before.end());
      placed.busiest_after += *std::max_element(after.begin(), after.end());
    }
    gain.layers.push_back(std::move(placed));
  }
  return gain;
}

}  // namespace orrery
