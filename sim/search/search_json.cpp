#include "sim/search/search_json.hpp"

#include <nlohmann/json.hpp>

#include "sim/training/inputs_json.hpp"
#include "sim/training/result_json.hpp"

namespace orrery {

std::string search_json(const SearchResult& result, const SearchRequest& request,
                        const SearchNames& names) {
  using Json = nlohmann::ordered_json;
  Json plans = Json::array();
  Json ranking = Json::array();
  Json inputs = Json::object();  // Of all plans together, as most have the same.
  for (const Found& found : result.plans) {
    plans.push_back(
        Json::parse(result_json(found.result, {.about_this_run = false, .inputs = false})));
    inputs.update(inputs_json(found.result.scenario), true);
    ranking.push_back({{"score", found.score},
                       {"tie", found.tie},
                       {"command", command_of(found, request, names)}});
    if (request.failures) {
      const Plan& plan = found.result.scenario.plan;
      const double tokens = static_cast<double>(plan.gbs) * static_cast<double>(plan.seq);
      ranking.back()["ettr_by_formula"] = found.result.step_time.si() / tokens / found.score;
    }
  }
  Json json;
  json["schema"] = "orrery.search/1";
  json["objective"] = goal_names()[static_cast<std::size_t>(request.goal)];
  if (request.failures) json["reliability"] = request.failures->profile.name;
  json["pareto"] = request.pareto;
  json["plans"] = std::move(plans);
  json["ranking"] = std::move(ranking);
  json["space"] = {{"legal", result.legal},         {"fits", result.fits},
                   {"simulated", result.simulated}, {"bounded_out", result.bounded_out},
                   {"parts", result.parts},         {"parts_cut_short", result.parts_cut_short}};
  json["optimal"] = result.optimal;
  json["interrupted"] = result.interrupted;
  if (!result.optimal && result.parts_cut_short == 0)
    json["unexplored_score_at_least"] = result.best_unexplored;
  json["inputs"] = std::move(inputs);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery
