#include "sim/search/serving_goal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "sim/core/nearest.hpp"
#include "sim/serving/token_cost.hpp"

namespace orrery {
namespace {

bool is_paid(ServingGoal goal) { return goal == ServingGoal::cost || goal == ServingGoal::energy; }

}  // namespace

const std::vector<std::string>& serving_goal_names() {
  static const std::vector<std::string> names{"throughput", "cost", "energy", "goodput"};
  return names;
}

ServingGoal parse_serving_goal(const std::string& text) {
  const std::vector<std::string>& names = serving_goal_names();
  const auto found = std::find(names.begin(), names.end(), text);
  if (found == names.end())
    fail_input({"", "--objective"}, "'" + text + "' is not an objective", suggestion(text, names));
  return static_cast<ServingGoal>(found - names.begin());
}

void need_prices(ServingGoal goal, const Economics& economics, const std::string& gpu) {
  if (!is_paid(goal)) return;
  const bool cost = goal == ServingGoal::cost;
  std::vector<std::string> missing;
  for (const std::string& key : unknown_prices(economics))
    if (cost ? key == "rent_usd_per_gpu_hour" : key == "server_watts_per_gpu" || key == "pue")
      missing.push_back(key);
  if (missing.empty()) return;
  std::string list;
  for (const std::string& key : missing) list += (list.empty() ? "" : ", ") + key;
  fail_input({"", "--objective"},
             serving_goal_names()[static_cast<std::size_t>(goal)] +
                 " needs what is not known of the GPU '" + gpu + "': " + list,
             price_remedy(missing));
}

double goal_figure(ServingGoal goal, double rate, const Economics& economics) {
  switch (goal) {
    case ServingGoal::cost:
      return token_cost(rate, 1.0, economics).usd_per_million.midpoint();
    case ServingGoal::energy:
      return token_cost(rate, 1.0, economics).joules.midpoint();
    case ServingGoal::throughput:
    case ServingGoal::goodput:
      break;
  }
  return rate;
}

double serving_score(ServingGoal goal, double rate, const Economics& economics) {
  if (!(rate > 0.0)) return std::numeric_limits<double>::infinity();
  return is_paid(goal) ? goal_figure(goal, rate, economics) : 1.0 / rate;
}

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
