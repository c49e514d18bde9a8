#include "sim/explorer/deployments_report.hpp"

#include <nlohmann/json.hpp>

namespace orrery {
namespace {

// Of a search over many loads more than a chart can tell apart.
constexpr std::size_t most_seen = 20'000;

std::string seen_json(const DeploymentSearchResult& result) {
  nlohmann::json list = nlohmann::json::array();
  const std::size_t every = result.seen.size() / most_seen + 1;
  for (std::size_t i = 0; i < result.seen.size(); i += every)
    list.push_back({result.seen[i].first, result.seen[i].second});
  return list.dump();
}

}  // namespace

std::string deployments_report(const DeploymentSearchResult& result,
                               const DeploymentSearchRequest& request,
                               const DeploymentSearchWords& words, const ReportAbout& about) {
  ReportPage page = document_page(deployment_search_document(result, request, words),
                                  chart_places({"deployments-chart"}),
                                  deployment_search_json(result, request, words), about);
  if (!result.found.empty()) {
    page.body += "<h2>To see each in full</h2>\n<pre>";
    for (const FoundDeployment& found : result.found)
      page.body += escaped_lines(command_of(found, request, words)) + "\n";
    page.body += "</pre>\n";
  }
  page.data.emplace_back("seen", seen_json(result));
  return report_html(page);
}

}  // namespace orrery
