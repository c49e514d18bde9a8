#include "sim/explore/reports/sweep_report.hpp"

#include "sim/base/text/markup.hpp"
#include "sim/base/text/number_text.hpp"

namespace orrery {

std::string sweep_report(const SweepFolder& folder, const BestRows& rows,
                         const ReportAbout& about) {
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
      ".</p>\n" + inputs_place("the sweep: its keys and values");
  page.data.emplace_back("inputs-data", sweep_json(folder.sweep));
  return report_html(page);
}

}  // namespace orrery
