#include "sim/search/deployment_search_text.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/figures.hpp"
#include "sim/core/number_text.hpp"
#include "sim/engine/network_model.hpp"
#include "sim/serving/serving_json.hpp"
#include "sim/serving/serving_step_text.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

constexpr int deployments_width = 78;

template <class Word>
std::string either(const DeploymentSearchRequest& request, const Word& word) {
  std::vector<std::string> words;
  for (const ServingPlatform& platform : request.platforms)
    if (std::find(words.begin(), words.end(), word(platform)) == words.end())
      words.push_back(word(platform));
  std::string text;
  for (const std::string& one : words) text += (text.empty() ? "" : " or ") + one;
  return text;
}

std::string systems_of(const DeploymentSearchRequest& request) {
  return either(request, [](const ServingPlatform& platform) { return platform.system.name; });
}
std::string gpus_of(const DeploymentSearchRequest& request) {
  return either(request, [](const ServingPlatform& platform) { return grouped(platform.gpus); });
}
std::string engines_of(const DeploymentSearchRequest& request) {
  return either(request, [](const ServingPlatform& platform) { return platform.engine.name; });
}
bool several(const std::string& text) { return text.find(" or ") != text.npos; }

const ServingPlatform& platform_of(const FoundDeployment& found,
                                   const DeploymentSearchRequest& request) {
  return request.platforms[static_cast<std::size_t>(found.layout.platform)];
}

std::string heading(const DeploymentSearchRequest& request, const DeploymentSearchWords& words) {
  std::vector<std::string> items{words.requests};
  if (request.loads.size() == 1) items.push_back(words.loads.front());
  if (request.loads.size() > 1) items.push_back(words.loads.front() + " to " + words.loads.back());
  if (!words.limits.empty()) items.push_back("limits " + words.limits);
  for (const Fixed& fixed : request.fixed) {
    std::string values;
    for (const std::string& value : fixed.values) values += (values.empty() ? "" : " or ") + value;
    items.push_back("fixed " + fixed.key + " " + values);
  }
  const std::string gpus = gpus_of(request);
  return request.model.name + " on " + systems_of(request) + ", " + gpus +
         (gpus == "1" ? " GPU" : " GPUs") + ", " + engines_of(request) + "\n" +
         wrapped("  ", items, ", ", deployments_width);
}

std::string counts(const DeploymentSearchResult& result, const DeploymentSearchRequest& request) {
  std::vector<std::string> parts{grouped(result.space.combinations) + " deployments, " +
                                 grouped(result.layouts) + " of them feasible"};
  if (request.loads.size() > 1)
    parts.push_back(grouped(result.points) + " points under " +
                    grouped(static_cast<std::int64_t>(request.loads.size())) + " loads");
  if (result.too_slow > 0) parts.push_back(grouped(result.too_slow) + " cannot meet the SLO");
  parts.push_back(grouped(result.replayed) + (result.replayed == 1 ? " was" : " were") +
                  " replayed");
  parts.push_back(grouped(result.bounded_out) + " ruled out by bounds");
  std::string text = wrapped("", parts, ", ", deployments_width);
  if (result.missed > 0) text += grouped(result.missed) + " of those replayed miss the SLO.\n";
  if (result.saturated > 0)
    text += grouped(result.saturated) + " of those replayed are overloaded: their queue grows.\n";
  for (const auto& [key, refused] : result.space.refused)
    text += "Refused for " + key + ": " + grouped(refused.count) + " (" + refused.example + ")\n";
  return text;
}

// "tp2 dp4 ep8".
std::string degrees_of(const Deployment& plan) {
  std::string text = "tp" + std::to_string(plan.tp);
  const auto degree = [&](const char* what, int value) {
    if (value > 1) text += std::string{" "} + what + std::to_string(value);
  };
  degree("pp", plan.pp);
  degree("dp", plan.dp);
  degree("ep", plan.ep);
  return text;
}

}  // namespace

std::string name_of(const FoundDeployment& found, const DeploymentSearchRequest& request) {
  const ServingPlatform& platform = platform_of(found, request);
  const Deployment& plan = found.layout.plan;
  std::string text;
  if (several(systems_of(request))) text += platform.system.name + " ";
  if (several(gpus_of(request))) text += grouped(platform.gpus) + " GPUs ";
  if (several(engines_of(request))) text += platform.engine.name + " ";
  if (const auto& pools = found.layout.pools) {
    text += std::to_string(pools->prefill.replicas) + "P " + degrees_of(pools->prefill) + " " +
            std::to_string(pools->decode.replicas) + "D " + degrees_of(pools->decode);
  } else {
    text += degrees_of(plan);
    if (plan.replicas > 1) text += " x" + std::to_string(plan.replicas);
  }
  for (const Fixed& fixed : request.fixed)
    if (fixed.values.size() > 1 && fixed.key != "tp" && fixed.key != "pp" && fixed.key != "dp" &&
        fixed.key != "ep" && fixed.key != "replicas") {
      const std::string flag = "--" + fixed.key + " ";
      const std::string flags = found.layout.flags + " ";
      const std::size_t value = flags.find(flag) + flag.size();
      text += " " + fixed.key + "=" + flags.substr(value, flags.find(' ', value) - value);
    }
  return text;
}

std::string command_of(const FoundDeployment& found, const DeploymentSearchRequest& request,
                       const DeploymentSearchWords& words) {
  const ServingPlatform& platform = platform_of(found, request);
  std::string text = "orrery serve --model " + words.model + " --system " + platform.system_word +
                     " --gpus " + std::to_string(platform.gpus) + " --engine " +
                     platform.engine_word + " " + found.layout.flags + " " +
                     words.load_flags[found.load];
  if (request.goal == ServingGoal::goodput) text += " --goodput";
  return text;
}

namespace {

std::string goal_heading(ServingGoal goal) {
  switch (goal) {
    case ServingGoal::cost:
      return "a million";
    case ServingGoal::energy:
      return "J a token";
    case ServingGoal::goodput:
      return "good/s/GPU";
    case ServingGoal::throughput:
      break;
  }
  return "";
}

// One that was found; its rank counts from 1.
Figures figures_of(const FoundDeployment& found, std::size_t rank,
                   const DeploymentSearchRequest& request, const DeploymentSearchWords& words) {
  const ServingPlatform& platform = platform_of(found, request);
  const ServingLoad& load = request.loads[found.load];
  const DeploymentFigures& of = found.figures;
  const double a_gpu = of.output_tokens_per_s / static_cast<double>(found.layout.gpus());
  const bool closed = load.list.clients > 0;
  Figures list;
  list.show({""}, std::to_string(rank) + (found.tie && rank > 1 ? "=" : " "));
  list.add("system", platform.system.name);
  list.add("gpus", platform.gpus);
  list.add("engine", platform.engine.name);
  const Json deployment = deployment_json(found.layout.plan, request.model);
  for (const auto& [key, value] : deployment.items()) list.add("deployment/" + key, value);
  // CSV has its degrees alone: all else is that of the pool that decodes.
  const Json prefill = found.layout.pools
                           ? deployment_json(found.layout.pools->prefill, request.model)
                           : Json(nullptr);
  list.add("prefill", prefill).json_only();
  for (const std::string degree : {"tp", "pp", "dp", "ep", "moe_tp", "replicas"})
    list.add("prefill_" + degree, prefill.is_null() ? prefill : prefill.at(degree)).csv_only();
  list.add("concurrency", closed ? Json(load.list.clients) : Json(nullptr));
  Figures::Figure& objective = list.add("objective", rounded(found.figure));
  if (const std::string heading = goal_heading(request.goal); !heading.empty())
    objective.shown({heading},
                    (request.goal == ServingGoal::cost ? "$" : "") + fixed(found.figure, 3));
  list.add("tie", found.tie);
  list.add("figures/output_tokens_per_s", rounded(of.output_tokens_per_s));
  list.add("figures/output_tokens_per_s_per_gpu", rounded(a_gpu))
      .shown({"tok/s/GPU"}, fixed(a_gpu, 1));
  list.add("figures/requests_per_s", rounded(of.requests_per_s));
  list.add("figures/interactivity_tokens_per_s", rounded(of.interactivity))
      .shown({"a user", Align::right, !request.list.is_front()}, fixed(of.interactivity, 1));
  const auto add_time = [&](const char* key, const char* heading, double seconds,
                            bool is_detail = false) {
    list.add(key, static_cast<double>(std::llround(seconds * 1e9)) / 1e6)
        .shown({heading, Align::right, is_detail}, fixed(seconds * 1e3, 1));
  };
  add_time("figures/ttft_p50_ms", "TTFT p50", of.ttft_p50_s);
  add_time("figures/ttft_p99_ms", "p99", of.ttft_p99_s);
  add_time("figures/tpot_p50_ms", "TPOT p50", of.tpot_p50_s);
  add_time("figures/tpot_p99_ms", "p99", of.tpot_p99_s, true);
  list.add("figures/kv_peak_share", rounded(of.kv_peak))
      .shown({"KV", Align::right, true}, percent(of.kv_peak));
  list.add("figures/preemptions", of.preemptions);
  if (load.replay.slo) list.add("figures/slo_attainment", rounded(of.slo_share));
  if (request.goal == ServingGoal::goodput) list.add("figures/largest_rate", of.rate);
  if (request.loads.size() > 1)
    list.show({closed ? "clients" : "load"},
              closed ? grouped(load.list.clients) : words.loads[found.load]);
  list.show({"deployment", Align::left}, name_of(found, request));
  const std::string command = command_of(found, request, words);
  list.add("command", command).csv_only();
  const Json cost = token_cost_json(found.cost);
  for (const auto& [key, range] : cost.items())
    list.add("cost/" + key, range.is_null() ? Json{{"low", nullptr}, {"high", nullptr}} : range);
  list.add("command", command).json_only();
  return list;
}

std::vector<Figures> figures_of(const DeploymentSearchResult& result,
                                const DeploymentSearchRequest& request,
                                const DeploymentSearchWords& words) {
  std::vector<Figures> all;
  for (const FoundDeployment& found : result.found)
    all.push_back(figures_of(found, all.size() + 1, request, words));
  return all;
}

bool comes_at_a_rate(const DeploymentSearchRequest& request) {
  return std::ranges::all_of(request.loads, [](const ServingLoad& load) {
    const Arrivals arrivals = load.traffic.arrivals;
    return arrivals != Arrivals::closed && arrivals != Arrivals::burst;
  });
}

}  // namespace

Document deployment_search_document(const DeploymentSearchResult& result,
                                    const DeploymentSearchRequest& request,
                                    const DeploymentSearchWords& words) {
  Document document;
  document.title(heading(request, words));
  document.gap();
  if (!result.found.empty()) {
    document.table(table_of(figures_of(result, request, words)));
    document.gap();
  }
  document.lines(counts(result, request));
  if (result.interrupted) document.paragraph("Interrupted: others may be better.\n");
  if (std::count_if(result.found.begin(), result.found.end(),
                    [](const FoundDeployment& found) { return found.tie; }) > 1)
    document.paragraph("= marks deployments that may be as good as the first (90 % confidence).\n");
  if (request.goal == ServingGoal::throughput && comes_at_a_rate(request))
    document.paragraph(
        "Requests come at a given rate: all that keep up make the same tokens.\n"
        "--objective goodput finds how much more each could take.\n");
  if (request.list.is_per_layout() && request.loads.size() > 1)
    document.paragraph("The best load of each layout; --all-settings lists others as well.\n");
  if (!result.found.empty()) {
    document.gap();
    document.paragraph("To see the first in full:\n");
    document.command(command_of(result.found.front(), request, words));
  }
  return document;
}

std::string deployment_search_json(const DeploymentSearchResult& result,
                                   const DeploymentSearchRequest& request,
                                   const DeploymentSearchWords& words) {
  Json points = Json::array();
  for (const Figures& found : figures_of(result, request, words)) points.push_back(found.json());
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

std::string deployment_search_csv(const DeploymentSearchResult& result,
                                  const DeploymentSearchRequest& request,
                                  const DeploymentSearchWords& words) {
  return csv_of(figures_of(result, request, words), all_digits);
}

}  // namespace orrery
