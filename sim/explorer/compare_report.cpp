#include "sim/explorer/compare_report.hpp"

#include <nlohmann/json.hpp>

namespace orrery {

std::string compare_report(const std::vector<PricedPlan>& plans,
                           const std::vector<ComparedRun>& runs,
                           const std::vector<std::string>& inputs, const ReportAbout& about) {
  Document document = compare_document(plans);
  if (!runs.empty()) document.append(compared_runs_document(runs));
  ReportPage page =
      document_page(document,
                    "<h2>What the steps wait for, for as many tokens as A has in one</h2>\n"
                    "<div id=\"compared\"></div>\n" +
                        chart_places({"compared-chart", "compared-runs-chart"}),
                    compare_json(plans, runs.empty() ? "" : compared_runs_json(runs)), about);
  page.title += ": " + std::to_string(plans.size()) + " plans";
  auto all = nlohmann::ordered_json::object();  // Most plans have the same.
  for (const std::string& of : inputs)
    if (!of.empty()) all.update(nlohmann::ordered_json::parse(of), true);
  page.body += inputs_place();
  page.data.emplace_back("inputs-data", all.dump());
  return report_html(page);
}

}  // namespace orrery
