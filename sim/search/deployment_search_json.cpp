#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/engine/network_model.hpp"
#include "sim/search/deployment_search_text.hpp"
#include "sim/serving/serving_json.hpp"
#include "sim/serving/token_cost.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

double milliseconds(double seconds) {
  return static_cast<double>(std::llround(seconds * 1e9)) / 1e6;
}

Json figures_json(const FoundDeployment& found) {
  const DeploymentFigures& figures = found.figures;
  const auto gpus = static_cast<double>(found.layout.gpus());
  Json json{{"output_tokens_per_s", rounded(figures.output_tokens_per_s)},
            {"output_tokens_per_s_per_gpu", rounded(figures.output_tokens_per_s / gpus)},
            {"requests_per_s", rounded(figures.requests_per_s)},
            {"interactivity_tokens_per_s", rounded(figures.interactivity)},
            {"ttft_p50_ms", milliseconds(figures.ttft_p50_s)},
            {"ttft_p99_ms", milliseconds(figures.ttft_p99_s)},
            {"tpot_p50_ms", milliseconds(figures.tpot_p50_s)},
            {"tpot_p99_ms", milliseconds(figures.tpot_p99_s)},
            {"kv_peak_share", rounded(figures.kv_peak)},
            {"preemptions", figures.preemptions}};
  return json;
}

Json found_json(const FoundDeployment& found, const DeploymentSearchRequest& request,
                const DeploymentSearchWords& words) {
  const ServingPlatform& platform =
      request.platforms[static_cast<std::size_t>(found.layout.platform)];
  const ServingLoad& load = request.loads[found.load];
  Json json{
      {"system", platform.system.name},
      {"gpus", platform.gpus},
      {"engine", platform.engine.name},
      {"deployment", deployment_json(found.layout.plan, request.model)},
      {"prefill", found.layout.pools ? deployment_json(found.layout.pools->prefill, request.model)
                                     : Json(nullptr)},
      {"concurrency", load.list.clients > 0 ? Json(load.list.clients) : Json(nullptr)},
      {"objective", rounded(found.figure)},
      {"tie", found.tie},
      {"figures", figures_json(found)}};
  if (load.replay.slo) json["figures"]["slo_attainment"] = rounded(found.figures.slo_share);
  if (request.goal == ServingGoal::goodput) json["figures"]["largest_rate"] = found.figures.rate;
  json["cost"] = token_cost_json(found.cost);
  json["command"] = command_of(found, request, words);
  return json;
}

// As RFC 4180 has it.
std::string cell(const Json& value) {
  if (value.is_null()) return "";
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  if (text.find_first_of(",\"\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char letter : text)
    quoted += letter == '"' ? std::string{"\"\""} : std::string{letter};
  return quoted + "\"";
}

}  // namespace

std::string deployment_search_json(const DeploymentSearchResult& result,
                                   const DeploymentSearchRequest& request,
                                   const DeploymentSearchWords& words) {
  Json points = Json::array();
  for (const FoundDeployment& found : result.found)
    points.push_back(found_json(found, request, words));
  Json refused = Json::object();
  for (const auto& [key, of] : result.space.refused)
    refused[key] = {{"count", of.count}, {"example", of.example}};
  const Json json{{"schema", "orrery.serving_search/1"},
                  {"simulator", name(chosen_simulator())},
                  {"model", request.model.name},
                  {"objective", serving_goal_names()[static_cast<std::size_t>(request.goal)]},
                  {"pareto", request.list.is_front()},
                  {"points", std::move(points)},
                  {"space",
                   {{"deployments", result.space.combinations},
                    {"fits", result.layouts},
                    {"points", result.points},
                    {"too_slow", result.too_slow},
                    {"replayed", result.replayed},
                    {"missed_limits", result.missed},
                    {"saturated", result.saturated},
                    {"bounded_out", result.bounded_out}}},
                  {"refused", std::move(refused)},
                  {"optimal", !result.interrupted}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The leaves of each point's JSON, so that both have the same names.
std::string deployment_search_csv(const DeploymentSearchResult& result,
                                  const DeploymentSearchRequest& request,
                                  const DeploymentSearchWords& words) {
  std::string header, lines;
  for (const FoundDeployment& found : result.found) {
    header.clear();
    std::string line;
    const Json json = found_json(found, request, words);
    const auto leaf = [&](const std::string& key, const Json& value) {
      header += (header.empty() ? "" : ",") + key;
      line += (line.empty() ? "" : ",") + cell(value);
    };
    for (const auto& [key, value] : json.items()) {
      if (key == "cost") continue;
      if (key == "prefill") {
        // Its degrees: all else is that of the pool that decodes.
        for (const char* degree : {"tp", "pp", "dp", "ep", "moe_tp", "replicas"})
          leaf(key + "_" + degree, value.is_null() ? value : value.at(degree));
        continue;
      }
      if (value.is_object())
        for (const auto& [inner, of] : value.items()) leaf(inner, of);
      else
        leaf(key, value);
    }
    for (const auto& [key, range] : json.at("cost").items())
      for (const char* end : {"low", "high"})
        leaf(key + "_" + end, range.is_null() ? range : range.at(end));
    lines += line + "\n";
  }
  return header + "\n" + lines;
}

}  // namespace orrery
