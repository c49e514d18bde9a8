#include "sim/search/deployment_search_text.hpp"

#include <algorithm>

#include "sim/core/number_text.hpp"
#include "sim/core/table.hpp"
#include "sim/serving/serving_step_text.hpp"

namespace orrery {
namespace {

constexpr int deployments_width = 78;

std::string milliseconds_text(double seconds) { return fixed(seconds * 1e3, 1); }

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

// "$0.42", "0.61 J", "3.214 /s".
std::string figure_text(const FoundDeployment& found, ServingGoal goal) {
  switch (goal) {
    case ServingGoal::cost:
      return "$" + fixed(found.figure, 3);
    case ServingGoal::energy:
      return fixed(found.figure, 3);
    case ServingGoal::goodput:
      return fixed(found.figure, 3);
    case ServingGoal::throughput:
      break;
  }
  return "";
}

std::string figure_title(ServingGoal goal) {
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

Table table_of(const DeploymentSearchResult& result, const DeploymentSearchRequest& request,
               const DeploymentSearchWords& words) {
  const std::string title = figure_title(request.goal);
  const bool loads = request.loads.size() > 1;
  std::vector<Column> columns{{""}};
  if (!title.empty()) columns.push_back({title});
  for (const char* header : {"tok/s/GPU", "a user", "TTFT p50", "p99", "TPOT p50", "p99", "KV"})
    columns.push_back({header});
  const bool closed = request.loads.front().list.clients > 0;
  if (loads) columns.push_back({closed ? "clients" : "load"});
  columns.push_back({"deployment", Align::left});
  Table table{columns};
  int rank = 0;
  for (const FoundDeployment& found : result.found) {
    const DeploymentFigures& figures = found.figures;
    ++rank;
    std::vector<std::string> cells{std::to_string(rank) + (found.tie && rank > 1 ? "=" : " ")};
    if (!title.empty()) cells.push_back(figure_text(found, request.goal));
    const auto gpus = static_cast<double>(found.layout.gpus());
    for (const std::string& cell :
         {fixed(figures.output_tokens_per_s / gpus, 1), fixed(figures.interactivity, 1),
          milliseconds_text(figures.ttft_p50_s), milliseconds_text(figures.ttft_p99_s),
          milliseconds_text(figures.tpot_p50_s), milliseconds_text(figures.tpot_p99_s),
          percent(figures.kv_peak)})
      cells.push_back(cell);
    if (loads)
      cells.push_back(closed ? grouped(request.loads[found.load].list.clients)
                             : words.loads[found.load]);
    cells.push_back(name_of(found, request));
    table.add_row(cells);
  }
  return table;
}

std::string counts(const DeploymentSearchResult& result, const DeploymentSearchRequest& request) {
  std::vector<std::string> parts{grouped(result.space.combinations) + " deployments, " +
                                 grouped(result.layouts) + " of them can be"};
  if (request.loads.size() > 1)
    parts.push_back("under " + grouped(static_cast<std::int64_t>(request.loads.size())) +
                    " loads " + grouped(result.points) + " points");
  if (result.too_slow > 0) parts.push_back(grouped(result.too_slow) + " too slow for their limits");
  parts.push_back(grouped(result.replayed) + (result.replayed == 1 ? " was" : " were") +
                  " replayed");
  parts.push_back(grouped(result.bounded_out) + " ruled out by their bounds");
  std::string text = wrapped("", parts, ", ", deployments_width);
  if (result.missed > 0)
    text += "Of " + grouped(result.missed) + " replayed too few requests keep to the limits.\n";
  if (result.saturated > 0)
    text += grouped(result.saturated) + " replayed are saturated: their queue grows.\n";
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

Document deployment_search_document(const DeploymentSearchResult& result,
                                    const DeploymentSearchRequest& request,
                                    const DeploymentSearchWords& words) {
  Document document;
  document.title(heading(request, words));
  document.gap();
  if (!result.found.empty()) {
    document.table(table_of(result, request, words));
    document.gap();
  }
  document.lines(counts(result, request));
  if (result.interrupted) document.paragraph("Interrupted: others may be better.\n");
  if (std::count_if(result.found.begin(), result.found.end(),
                    [](const FoundDeployment& found) { return found.tie; }) > 1)
    document.paragraph("= marks deployments that may be as good as the first (9 in 10).\n");
  if (request.list.is_per_layout() && request.loads.size() > 1)
    document.paragraph("The best load of each layout; --all-settings lists others as well.\n");
  if (!result.found.empty()) {
    document.gap();
    document.paragraph("To see the first in full:\n");
    document.command(command_of(result.found.front(), request, words));
  }
  return document;
}

}  // namespace orrery
