#include "sim/plan/rings.hpp"

#include <algorithm>

namespace orrery {

std::vector<Ring> rings_of(const Placement& placement, const std::vector<Rank>& group) {
  std::vector<std::vector<Rank>> domains;
  for (Rank rank : group) {
    if (domains.empty() || !placement.same_domain(domains.back().front(), rank))
      domains.emplace_back();
    domains.back().push_back(rank);
  }
  std::vector<Ring> rings;
  std::size_t outside = domains.front().size();
  for (const std::vector<Rank>& domain : domains) {
    if (domain.size() > 1) rings.push_back({domain, true});
    outside = std::min(outside, domain.size());
  }
  if (domains.size() == 1) return rings;
  for (std::size_t i = 0; i < outside; ++i) {
    Ring ring{{}, false};
    for (const std::vector<Rank>& domain : domains) ring.ranks.push_back(domain[i]);
    rings.push_back(std::move(ring));
  }
  return rings;
}

}  // namespace orrery
