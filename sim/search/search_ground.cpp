#include "sim/search/search_ground.hpp"

#include <algorithm>

namespace orrery {
namespace {

bool needs_prices(const SearchRequest& request) {
  return request.goal == Goal::cost_per_token || request.goal == Goal::energy_per_token ||
         request.tokens || request.deadline;
}

// Where a bill has gaps, a score must not.
void require_prices(Goal goal, const Economics& economics, const std::string& gpu) {
  std::vector<std::string> missing;
  std::string list;
  for (const std::string& key : unknown_prices(economics)) {
    const std::vector<std::string>& needed = prices_of(goal);
    if (std::find(needed.begin(), needed.end(), key) == needed.end()) continue;
    missing.push_back(key);
    list += (list.empty() ? "" : ", ") + key;
  }
  if (!missing.empty())
    fail_input({"--objective", ""},
               goal_names()[static_cast<std::size_t>(goal)] +
                   " needs what is not known of the GPU '" + gpu + "': " + list,
               price_remedy(missing));
}

}  // namespace

SearchGround::SearchGround(const SearchRequest& request) {
  for (std::size_t s = 0; s < request.systems.size(); ++s) {
    const System& system = request.systems[s];
    contexts.push_back(std::make_unique<EstimateContext>(system));
    economics.emplace_back();
    if (needs_prices(request)) {
      economics.back() = read_economics(system.gpu.name, request.economics);
      require_prices(request.goal, *economics.back(), system.gpu.name);
    }
    for (int gpus : request.gpus)
      for (std::int64_t gbs : request.gbs) {
        spaces.emplace_back(request.model, system, gpus, gbs, request.fixed);
        system_of.push_back(static_cast<int>(s));
      }
  }
}

}  // namespace orrery
