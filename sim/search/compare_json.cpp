#include <nlohmann/json.hpp>

#include "sim/search/compare_text.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

Json lines_json(const std::vector<std::pair<std::string, Seconds>>& lines) {
  Json json = Json::object();
  for (const auto& [line, time] : lines) json[line] = time.si();
  return json;
}

Json plan_json(const PricedPlan& priced, const std::string& label) {
  const ComparedPlan& plan = priced.plan;
  Json keys = Json::object();
  for (const auto& [key, value] : plan.plan) keys[key] = value;
  Json rent;
  if (priced.rent_usd_per_gpu_hour) {
    const Range usd = plan.usd_per_trillion_tokens(*priced.rent_usd_per_gpu_hour);
    rent = {{"low", usd.low}, {"high", usd.high}};
  }
  Json json{{"label", label},
            {"source", plan.source},
            {"model", plan.model},
            {"system", plan.range.system},
            {"gpus", plan.gpus},
            {"plan", std::move(keys)},
            {"step_time_s", plan.range.step.si()},
            {"step_time_range",
             {{"coverage", range_coverage},
              {"low_s", plan.range.low().si()},
              {"high_s", plan.range.high().si()}}},
            {"tokens_per_s_per_gpu", plan.tokens_per_s_per_gpu},
            {"mfu", plan.mfu},
            {"peak_bytes", plan.peak.si()},
            {"capacity_bytes", plan.capacity.si()},
            {"critical_path_s", lines_json(plan.critical_path)},
            {"usd_per_trillion_tokens", std::move(rent)}};
  json["simulator"] = name(plan.simulator);
  return json;
}

}  // namespace

std::string compare_json(const std::vector<PricedPlan>& plans, const std::string& runs) {
  Json list = Json::array();
  Json differences = Json::array();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    list.push_back(plan_json(plans[i], plan_label(i)));
    if (i == 0) continue;
    const PlanDifference found = difference(plans.front().plan, plans[i].plan);
    differences.push_back({{"from", plan_label(0)},
                           {"to", plan_label(i)},
                           {"step_time_s", found.step.mean.si()},
                           {"low_s", found.step.low().si()},
                           {"high_s", found.step.high().si()},
                           {"tie", found.step.is_tie()},
                           {"critical_path_s", lines_json(found.critical_path)}});
  }
  Json json{{"schema", "orrery.compare/1"},
            {"plans", std::move(list)},
            {"differences", std::move(differences)}};
  if (!runs.empty()) json["runs"] = Json::parse(runs);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery
