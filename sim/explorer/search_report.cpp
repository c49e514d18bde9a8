#include "sim/explorer/search_report.hpp"

#include "sim/core/document.hpp"
#include "sim/core/markup.hpp"
#include "sim/core/number_text.hpp"
#include "sim/explorer/report_page.hpp"
#include "sim/search/search_json.hpp"
#include "sim/training/bill_text.hpp"

namespace orrery {
namespace {

std::string one_paragraph(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : " ") + line;
  return text;
}

}  // namespace

std::string search_report(const SearchResult& result, const SearchRequest& request,
                          const SearchNames& names, const ReportAbout& about) {
  std::vector<std::string> asked = said_lines(search_heading(result, request));
  const std::string title = asked.empty() ? "" : asked.front() + ": the best plans";
  if (!asked.empty()) asked.erase(asked.begin());
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
                      .about = {one_paragraph(asked), "Orrery " ORRERY_VERSION},
                      .command = about.command,
                      .body = html,
                      .result = search_json(result, request, names),
                      .data = {},
                      .timeline = ""});
}

}  // namespace orrery
