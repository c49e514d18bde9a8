#include "sim/explorer/sweep_report.hpp"

#include <nlohmann/json.hpp>

#include "sim/core/markup.hpp"
#include "sim/core/number_text.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/plan/software.hpp"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

// As inputs_json() has those of one plan: all that the sweep names.
Json named_inputs(const Sweep& sweep, const SweepInputs& inputs) {
  Json json = Json::object();
  const auto add = [&](const char* shelf, const std::string& name,
                       const std::optional<JsonValue>& document) {
    if (document) json[shelf][name] = Json::parse(document->compact());
  };
  for (const auto& [word, model] : inputs.models) add("models", model.name, model.document);
  for (const auto& [word, system] : inputs.systems) {
    add("systems", system.name, system.document);
    if (system.calibration)
      add("calibrations", system.calibration->file, system.calibration->document);
  }
  for (const Dimension& dimension : sweep.dimensions)
    for (const Axis& axis : dimension.axes)
      if (axis.key == "software")
        for (const AxisValue& value : axis.values) {
          const Software software = read_software(value.text, {"", "--software"});
          add("software", software.name, software.document);
        }
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
  if (inputs) all.update(named_inputs(folder.sweep, *inputs));
  page.data.emplace_back("inputs-data", all.dump());
  const std::string html = report_html(page);
  if (html.size() <= most_bytes_of_a_report) return html;
  page.data.back().second = Json{{"sweep", all.at("sweep")}}.dump();
  return report_html(page);
}

}  // namespace orrery
