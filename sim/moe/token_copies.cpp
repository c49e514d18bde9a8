#include "sim/moe/token_copies.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>
#include <vector>

namespace orrery {
namespace {

// C(all - left_out, k) / C(all, k): none of k different experts is among `left_out` of `all`.
double chance_of_none(std::int64_t all, std::int64_t left_out, std::int64_t k) {
  double chance = 1.0;
  for (std::int64_t i = 0; i < k; ++i)
    chance *= static_cast<double>(std::max<std::int64_t>(0, all - left_out - i)) /
              static_cast<double>(all - i);
  return chance;
}

// Number of experts [first, last) in each group that has any of them.
std::vector<std::size_t> by_group(const Experts& experts, std::int64_t first, std::int64_t last) {
  const std::int64_t size = experts.count / experts.groups;
  std::vector<std::size_t> counts;
  for (std::int64_t at = first, end = 0; at < last; at = end) {
    end = std::min(last, (at / size + 1) * size);
    counts.push_back(static_cast<std::size_t>(end - at));
  }
  return counts;
}

// The chance that a token misses all experts of a share, which has `of_groups` experts in some
// groups. The router picks groups first: the ways to pick them that leave `open` of these experts
// to choose from are counted group by group.
double chance_to_miss(const Experts& experts, const std::vector<std::size_t>& of_groups) {
  const std::int64_t size = experts.count / experts.groups;
  const auto most = static_cast<std::size_t>(experts.groups_per_token);
  const std::size_t share = std::accumulate(of_groups.begin(), of_groups.end(), std::size_t{0});
  std::vector<std::vector<double>> ways(most + 1, std::vector<double>(share + 1, 0.0));
  ways[0][0] = 1.0;
  for (std::size_t group = 0; group < static_cast<std::size_t>(experts.groups); ++group) {
    const std::size_t here = group < of_groups.size() ? of_groups[group] : 0;
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

// Tokens begin at all multiples of the greatest common divisor alike.
double shares_in_turn(const Experts& experts, int parts) {
  const std::int64_t share = experts.count / parts;
  const std::int64_t step = std::gcd(experts.per_token, experts.count);
  std::int64_t reached = 0;
  for (std::int64_t first = 0; first < experts.count; first += step)
    reached +=
        std::min<std::int64_t>(parts, (first + experts.per_token - 1) / share - first / share + 1);
  return static_cast<double>(reached) / static_cast<double>(experts.count / step);
}

}  // namespace

ExchangeLoad operator*(double times, const ExchangeLoad& load) {
  const auto ports = [&](const ExchangeLoad::Ports& one) {
    return ExchangeLoad::Ports{times * one.scale_up, times * one.network};
  };
  return {times * load.tokens, ports(load.direct), ports(load.rails), ports(load.once),
          times * load.received};
}

// Most shares have the same numbers per group as the previous one, and so the same chance.
double distinct_shares(const Experts& experts, int parts, EvenChoice choice) {
  assert(parts >= 1 && experts.count % parts == 0 && experts.count % experts.groups == 0);
  if (choice == EvenChoice::in_turn) return shares_in_turn(experts, parts);
  assert(experts.per_token <= experts.count / experts.groups * experts.groups_per_token);
  const std::int64_t share = experts.count / parts;
  std::vector<std::size_t> of_groups;
  double reached = 0.0, missed = 0.0;
  for (int part = 0; part < parts; ++part) {
    std::vector<std::size_t> own = by_group(experts, part * share, (part + 1) * share);
    if (own != of_groups) missed = chance_to_miss(experts, own);
    of_groups = std::move(own);
    reached += 1.0 - missed;
  }
  return reached;
}

ExchangeLoad uniform_exchange(const Experts& experts, int ranks, int per_domain, double tokens,
                              EvenChoice choice) {
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
  load.received = tokens * distinct_shares(experts, ranks, choice);
  load.once.scale_up = load.received * others(per_domain);
  load.once.network = tokens * distinct_shares(experts, domains, choice) * others(domains);
  return load;
}

}  // namespace orrery
