#include <algorithm>
#include <sstream>

#include "sim/base/draw/chart.hpp"
#include "sim/base/draw/html_page.hpp"
#include "sim/base/text/markup.hpp"
#include "sim/output/served/deployment_search_text.hpp"

namespace orrery {
namespace {

// Those of the list that no other of it beats in both, by rising speed of a user.
std::vector<ChartPoint> front_of(std::vector<ChartPoint> points) {
  std::sort(points.begin(), points.end(), [](const ChartPoint& a, const ChartPoint& b) {
    return a.x != b.x ? a.x > b.x : a.y > b.y;
  });
  std::vector<ChartPoint> front;
  for (const ChartPoint& point : points)
    if (front.empty() || point.y > front.back().y) front.push_back(point);
  std::reverse(front.begin(), front.end());
  return front;
}

// Line by line, as escaped() lets no control character pass, of which the line's end is one.
std::string lines(const std::string& text) {
  std::string html = "<pre>";
  std::istringstream all{text};
  for (std::string line; std::getline(all, line);) html += escaped(line) + "\n";
  return html + "</pre>\n";
}

}  // namespace

std::string deployment_search_html(const DeploymentSearchResult& result,
                                   const DeploymentSearchRequest& request,
                                   const DeploymentSearchWords& words) {
  std::vector<ChartPoint> all, listed;
  for (const auto& [interactivity, rate] : result.seen) all.push_back({interactivity, rate, ""});
  for (const FoundDeployment& found : result.found)
    listed.push_back({found.figures.interactivity,
                      found.figures.output_tokens_per_s / static_cast<double>(found.layout.gpus()),
                      name_of(found, request) +
                          (request.loads.size() > 1 ? ", " + words.loads[found.load] : "")});
  const std::string chart =
      pareto_chart({"A user's speed against what a GPU makes",
                    "grey: all that were replayed; the line: what no other of the list beats",
                    "tokens a second of a user", "tokens a second and GPU"},
                   all, front_of(listed));
  const std::string text = deployment_search_text(result, request, words);
  return html_page(
      request.model.name + ", deployments",
      chart + lines(text) + json_element(deployment_search_json(result, request, words)));
}

}  // namespace orrery
