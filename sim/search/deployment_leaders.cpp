#include "sim/search/deployment_leaders.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace orrery {
namespace {

bool deployment_leads(const DeploymentStanding& a, const DeploymentStanding& b) {
  return std::tie(a.score, a.between, a.point) < std::tie(b.score, b.between, b.point);
}

// Nowhere worse, and better or first of equals.
bool beats(const DeploymentStanding& a, const DeploymentStanding& b) {
  return deployment_leads(a, b) && a.between <= b.between;
}

}  // namespace

std::vector<DeploymentStanding>::const_iterator DeploymentLeaders::of_layout(int layout) const {
  if (kind_ != Kind::layouts) return leaders_.end();
  return std::find_if(leaders_.begin(), leaders_.end(),
                      [&](const DeploymentStanding& leader) { return leader.layout == layout; });
}

// What only equals a bound may still lead as the first of equals.
bool DeploymentLeaders::may_take(const DeploymentStanding& bound) const {
  if (std::isinf(bound.score)) return false;
  if (kind_ == Kind::front)
    return std::none_of(leaders_.begin(), leaders_.end(), [&](const DeploymentStanding& leader) {
      return leader.score < bound.score && leader.between <= bound.between;
    });
  if (const auto own = of_layout(bound.layout); own != leaders_.end())
    return bound.score <= own->score;
  return leaders_.size() < most_ || bound.score <= leaders_.back().score;
}

void DeploymentLeaders::offer(const DeploymentStanding& standing) {
  if (std::isinf(standing.score)) return;
  if (kind_ == Kind::front) {
    if (std::any_of(leaders_.begin(), leaders_.end(),
                    [&](const DeploymentStanding& leader) { return beats(leader, standing); }))
      return;
    std::erase_if(leaders_,
                  [&](const DeploymentStanding& leader) { return beats(standing, leader); });
  } else if (const auto own = of_layout(standing.layout); own != leaders_.end()) {
    if (deployment_leads(*own, standing)) return;
    leaders_.erase(own);
  }
  leaders_.insert(std::upper_bound(leaders_.begin(), leaders_.end(), standing, deployment_leads),
                  standing);
  if (kind_ != Kind::front && leaders_.size() > most_) leaders_.pop_back();
}

}  // namespace orrery
