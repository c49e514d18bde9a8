#include "sim/explorer/purchase_report.hpp"

#include <nlohmann/json.hpp>

namespace orrery {
namespace {

std::string without_results(const std::string& purchase) {
  auto json = nlohmann::ordered_json::parse(purchase);
  for (auto& row : json.at("rows")) row.erase("result");
  return json.dump(2) + "\n";
}

}  // namespace

std::string purchase_report(const Purchase& purchase, const PurchaseRequest& request,
                            const PurchaseNames& names, const ReportAbout& about) {
  ReportPage page = document_page(purchase_document(purchase, request, names),
                                  "<div id=\"purchase-legend\"></div>\n" +
                                      chart_places({"purchase-cost-chart", "purchase-days-chart"}),
                                  purchase_json(purchase, request, names), about);
  page.title += ": which machine?";
  page.body += inputs_place();
  const std::string html = report_html(page);
  if (html.size() <= most_bytes_of_a_report) return html;
  page.result = without_results(page.result);
  return report_html(page);
}

}  // namespace orrery
