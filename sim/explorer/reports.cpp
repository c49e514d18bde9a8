#include "sim/explorer/reports.hpp"

#include <nlohmann/json.hpp>

#include "sim/core/document.hpp"
#include "sim/core/number_text.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/value_list.hpp"
#include "sim/explorer/report_page.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/plan/software.hpp"
#include "sim/search/search_text.hpp"
#include "sim/training/training_text.hpp"

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
  auto all = nlohmann::ordered_json::object();  // Most plans share their inputs.
  for (const std::string& of : inputs)
    if (!of.empty()) all.update(nlohmann::ordered_json::parse(of), true);
  page.body += inputs_place();
  page.data.emplace_back("inputs-data", all.dump());
  return report_html(page);
}

namespace {

// A search over many loads sees more than a chart can show.
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

std::string search_report(const SearchResult& result, const SearchRequest& request,
                          const SearchNames& names, const ReportAbout& about) {
  std::vector<std::string> heading = lines_of_text(search_heading(result, request));
  const std::string title = heading.empty() ? "" : heading.front() + ": the best plans";
  if (!heading.empty()) heading.erase(heading.begin());
  std::string html;
  if (!result.plans.empty())
    html +=
        "<div class=\"charts\"><div id=\"search-memory-chart\"></div><div "
        "id=\"search-cost-chart\"></div></div>\n" +
        search_table(result, request).html();
  html += "<p class=\"note lines\">" + escaped_lines(search_notes(result, request)) + "</p>\n";
  if (!result.plans.empty() && result.plans.front().result.bill) {
    const Bill& bill = *result.plans.front().result.bill;
    html += "<h2>The first: " + escaped(bill_head(bill)) + "</h2>\n" + bill_table(bill).html() +
            "<p>" + escaped(bill_note(bill)) + "</p>\n";
  }
  if (!result.plans.empty()) {
    html += "<h2>To estimate each in full</h2>\n<pre>";
    for (const Found& found : result.plans)
      html += escaped(command_of(found, request, names)) + "\n";
    html += "</pre>\n" + inputs_place();
  }
  return report_html({.title = title,
                      .about = {joined(heading, " "), "Orrery " ORRERY_VERSION},
                      .command = about.command,
                      .body = html,
                      .result = search_json(result, request, names),
                      .data = {},
                      .timeline = ""});
}

namespace {

using Json = nlohmann::ordered_json;

// All inputs that the sweep names, in the form that inputs_json() has for one plan.
Json named_inputs(const SweepInputs& inputs) {
  Json json = Json::object();
  const auto add = [&](const char* section, const std::string& name,
                       const std::optional<JsonValue>& document) {
    if (document) json[section][name] = Json::parse(document->compact());
  };
  for (const auto& [word, model] : inputs.models) add("models", model.name, model.document);
  for (const auto& [word, system] : inputs.systems) {
    add("systems", system.name, system.document);
    if (system.calibration)
      add("calibrations", system.calibration->file, system.calibration->document);
  }
  for (const auto& [word, software] : inputs.software)
    add("software", software.name, software.document);
  return json;
}

}  // namespace

std::string sweep_report(const SweepFolder& folder, const BestRows& rows,
                         const std::optional<SweepInputs>& inputs, const ReportAbout& about) {
  constexpr std::size_t most_lines = 50;
  ReportPage page = document_page(sweep_document(folder.sweep, rows, most_lines),
                                  "<div id=\"sweep-drawings\"></div>\n",
                                  sweep_rows_json(folder.sweep, rows), about);
  page.title += ": a sweep";
  if (rows.ok() > std::ssize(rows.best()))
    page.body += "<p class=\"note\">Drawn are the best " +
                 escaped(grouped(std::ssize(rows.best())) + " of " + grouped(rows.ok())) +
                 ".</p>\n";
  page.body +=
      "<p class=\"note\">Program, catalog and measurements: " + escaped(folder.fingerprint) +
      ".</p>\n" + inputs_place("all inputs: the sweep, and what it names");
  Json all{{"sweep", Json::parse(sweep_json(folder.sweep))}};
  if (inputs) all.update(named_inputs(*inputs));
  page.data.emplace_back("inputs-data", all.dump());
  const std::string html = report_html(page);
  if (html.size() <= most_bytes_of_a_report) return html;
  page.data.back().second = Json{{"sweep", all.at("sweep")}}.dump();
  return report_html(page);
}

}  // namespace orrery
