#include "sim/cluster/routing/token_copies.hpp"

#include <algorithm>
#include <cassert>
#include <vector>

namespace orrery {
namespace {

// C(all - left_out, k) / C(all, k): no one of k different experts is among `left_out` of `all`.
double chance_of_none(std::int64_t all, std::int64_t left_out, std::int64_t k) {
  double chance = 1.0;
  for (std::int64_t i = 0; i < k; ++i)
    chance *= static_cast<double>(std::max<std::int64_t>(0, all - left_out - i)) /
              static_cast<double>(all - i);
  return chance;
}

// A token misses experts [first, last). It picks groups first: of all ways to pick them, those that
// leave `open` of these experts to choose from are counted group by group.
double chance_to_miss(const Experts& experts, std::int64_t first, std::int64_t last) {
  const std::int64_t size = experts.count / experts.groups;
  const auto most = static_cast<std::size_t>(experts.groups_per_token);
  const auto share = static_cast<std::size_t>(last - first);
  std::vector<std::vector<double>> ways(most + 1, std::vector<double>(share + 1, 0.0));
  ways[0][0] = 1.0;
  for (std::int64_t group = 0; group < experts.groups; ++group) {
    const std::int64_t from = std::max(first, group * size);
    const std::int64_t to = std::min(last, (group + 1) * size);
    const auto here = static_cast<std::size_t>(std::max<std::int64_t>(0, to - from));
    for (std::size_t picked = most; picked-- > 0;)
      for (std::size_t open = 0; open + here <= share; ++open)
        ways[picked + 1][open + here] += ways[picked][open];
  }
  double all = 0.0, missed = 0.0;
  for (std::size_t open = 0; open <= share; ++open) {
    all += ways[most][open];
    missed += ways[most][open] * chance_of_none(experts.groups_per_token * size,
                                                static_cast<std::int64_t>(open), experts.per_token);
  }
  return missed / all;
}

}  // namespace

double distinct_shares(const Experts& experts, int parts) {
  assert(parts >= 1 && experts.count % parts == 0 && experts.count % experts.groups == 0);
  assert(experts.per_token <= experts.count / experts.groups * experts.groups_per_token);
  const std::int64_t share = experts.count / parts;
  double reached = 0.0;
  for (int part = 0; part < parts; ++part)
    reached += 1.0 - chance_to_miss(experts, part * share, (part + 1) * share);
  return reached;
}

ExchangeLoad uniform_exchange(const Experts& experts, int ranks, int per_domain, double tokens) {
  assert(per_domain >= 1 && ranks % per_domain == 0);
  const int domains = ranks / per_domain;
  const double copies = tokens * static_cast<double>(experts.per_token);
  const auto others = [](int n) { return static_cast<double>(n - 1) / n; };
  ExchangeLoad load;
  load.tokens = tokens;
  load.direct.scale_up = copies * (per_domain - 1) / ranks;
  load.direct.network = copies * (ranks - per_domain) / ranks;
  load.rails.scale_up = copies * others(per_domain);
  load.rails.network = copies * others(domains);
  load.received = tokens * distinct_shares(experts, ranks);
  load.once.scale_up = load.received * others(per_domain);
  load.once.network = tokens * distinct_shares(experts, domains) * others(domains);
  return load;
}

}  // namespace orrery
