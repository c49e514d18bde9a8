#include "sim/search/serving_goal.hpp"

#include <algorithm>
#include <limits>

#include "sim/core/nearest.hpp"
#include "sim/serving/serving_step_text.hpp"

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

}  // namespace orrery
