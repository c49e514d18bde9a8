#include <algorithm>

#include "sim/core/number_text.hpp"
#include "sim/core/quoting.hpp"
#include "sim/core/value_list.hpp"
#include "sim/explorer/cluster_view.hpp"
#include "sim/explorer/report_page.hpp"
#include "sim/explorer/reports.hpp"
#include "sim/explorer/timeline_bytes.hpp"
#include "sim/explorer/views.hpp"
#include "sim/measurements/calibration.hpp"
#include "sim/profile/kernel_text.hpp"
#include "sim/profile/profile_text.hpp"
#include "sim/profile/step_operations.hpp"
#include "sim/training/result_items.hpp"
#include "sim/training/result_json.hpp"
#include "sim/training/training_text.hpp"

namespace orrery {
namespace {

std::string paragraph(const char* kind, const std::string& text) {
  return std::string{"<p class=\""} + kind + "\">" + escaped(text) + "</p>\n";
}

std::string heading(const std::string& text) { return "<h2>" + escaped(text) + "</h2>\n"; }

std::string figures_folded(const Table& table) {
  return "<details><summary>figures</summary>\n" + table.html() + "</details>\n";
}

std::string title(const Result& result) {
  const int gpus = result.scenario.plan.gpus();
  return result.scenario.model.name + " on " + result.scenario.system.name + ", " + grouped(gpus) +
         (gpus == 1 ? " GPU" : " GPUs");
}

// The markup is that of the explorer's own page (showFigures).
std::string key_figures(const Result& result) {
  std::string html = "<dl id=\"figures\" class=\"figures\">\n";
  const auto add = [&](const char* id, const char* name, const std::string& value,
                       const std::string& more) {
    html += std::string{"<div class=\"figure\" id=\"figure-"} + id + "\"><dt>" + name +
            "</dt><dd><span class=\"value\">" + escaped(value) + "</span><span class=\"note\">" +
            escaped(more) + "</span></dd></div>\n";
  };
  const DisplayUnit unit = time_unit(result.step_time);
  const auto amount = [&](Seconds time) { return fixed(time.si() / unit.si, 3); };
  add("step", "Step time", amount(result.step_time) + " " + std::string{unit.name},
      amount(result.range.low()) + " .. " + amount(result.range.high()) + " (90 % interval)");
  add("throughput", "Tokens/s/GPU", fixed(result.tokens_per_s_per_gpu, 1),
      fixed(result.tokens_per_s, 0) + " tokens/s");
  add("mfu", "MFU", percent(result.mfu),
      fixed(result.model_tflops_per_gpu, 1) + " TFLOP/s/GPU; " + percent(result.mfu_full) +
          " if masked scores count too");
  const MemoryReport& memory = result.memory;
  add("memory", "Memory, fullest GPU", percent(memory.peak() / memory.capacity),
      bytes_text(memory.peak()) + " of " + bytes_text(memory.capacity) + ", stage " +
          grouped(memory.fullest_stage()));
  return html + "</dl>\n";
}

// A drawing that the script makes, and its figures.
std::string drawing(const char* id, const Table& figures) {
  return std::string{"<div id=\""} + id + "\"></div>\n" + figures_folded(figures);
}

std::string critical_section(const Result& result) {
  return heading(critical_head(result)) +
         drawing("critical",
                 critical_table(result, [](const std::string&, bool) { return std::string{}; }));
}

std::string stages_section(const Result& result) {
  return heading("Where the time of a GPU goes, by stage") + drawing("stages", stage_table(result));
}

std::string routing_section(const Result& result) {
  const std::vector<LabelledItems> lines = routing_items(result);
  if (lines.empty()) return "";
  Table table{{{"", Align::left}, {"", Align::left}}};
  for (const auto& [label, items] : lines) table.add_row({label, joined(items)});
  return heading("Routing " + result.scenario.plan.routing) + table.html();
}

// The script's drawing has the same figures.
std::string kinds_section(const Result& result) {
  if (result.kinds.empty()) return "";
  return heading("Layers by kind") + "<div id=\"kinds\">\n" +
         paragraph("note", "All of a model; times of a micro-batch in ms.") +
         kinds_table(result).html() + "</div>\n";
}

std::string memory_section(const Result& result) {
  const MemoryReport& report = result.memory;
  Table table{{{"stage"},
               {"weights"},
               {"gradients"},
               {"optimizer"},
               {"activations"},
               {"other"},
               {"peak"},
               {"of GPU"}}};
  for (std::size_t i = 0; i < report.stages.size(); ++i) {
    const StageMemory& stage = report.stages[i];
    std::vector<std::string> cells{grouped(static_cast<std::int64_t>(i))};
    for (Bytes part :
         {stage.weights, stage.gradients, stage.optimizer, stage.activations, stage.other})
      cells.push_back(bytes_text(part));
    cells.push_back(bytes_text(stage.peak()));
    cells.push_back(percent(stage.peak() / report.capacity));
    table.add_row(std::move(cells));
  }
  // The script's drawing has the same figures.
  return heading("Memory of a GPU") + "<div id=\"memory\">\n" + table.html() + "</div>\n";
}

// Sources and dates of the measurements.
std::vector<std::string> measurements(const Result& result) {
  const Scenario& scenario = result.scenario;
  std::vector<std::string> lines;
  if (const auto& own = scenario.system.calibration)
    for (const Calibration::Source& source : own->sources)
      lines.push_back("Measured: " + shown_text(source.file) +
                      (source.machine.empty() ? "" : ", on " + shown_text(source.machine)) +
                      (source.started.empty() ? "" : ", " + source.started.substr(0, 10)));
  const std::optional<KernelTables> tables = kernel_tables_of(scenario.system);
  if (!tables) return lines;
  for (const GemmTable& table : tables->gemm)
    if (table.dtype == scenario.plan.dtype) lines.push_back("Matrix products: " + table.source);
  if (tables->attention) lines.push_back("Attention: " + tables->attention->source);
  return lines;
}

std::string basis_section(const Result& result) {
  const System& system = result.scenario.system;
  std::string html =
      heading("What it rests on") +
      paragraph("note", "Times of kernels and collectives: " + joined(basis_items(result)) + "." +
                            (system.calibration
                                 ? " Measured by " + shown_text(system.calibration->file) + "."
                                 : ""));
  for (const std::string& line : measurements(result)) html += paragraph("note", line);
  for (const std::string& warning : result.warnings) html += paragraph("warning", warning);
  return html + inputs_place();
}

// Places of the explorer's drawings that open, which the script fetches from its page, each with
// figures that need no script.
std::string views_section(const Result& result, const OperationList& operations) {
  std::string html = "<div id=\"views\"></div>\n";
  html += "<details><summary>figures of the operations</summary>\n" +
          operations_table(operations).html() +
          "<p class=\"note\">By what bounds them: " + escaped(bounds_text(operations)) +
          ".</p></details>\n";
  if (!result.links.empty())
    html += heading("Links: the busiest of each class, and by whom") + link_table(result).html();
  return html;
}

// More slices than these a person does not look through.
constexpr std::int64_t most_slices_in_a_report = 60'000;
// The timeline takes half of the bytes.
constexpr std::size_t most_bytes_of_memory = 500'000, most_bytes_of_a_view = 450'000;

std::string memory_data(const Estimate& answer, const RoutedLoads& loads) {
  for (std::size_t ranks = most_ranks_with_memory;; ranks /= 2)
    if (std::string data = memory_view(answer, loads, ranks);
        data.size() <= most_bytes_of_memory || ranks == 1)
      return data;
}

std::string timeline_that_fits(const Estimate& answer, std::size_t most_bytes) {
  std::string bytes;
  for (std::int64_t most = most_slices_in_a_report; most > 100;) {
    bytes = timeline_bytes(answer, most);
    if (bytes.size() <= most_bytes) return bytes;
    const double share = static_cast<double>(most_bytes) / static_cast<double>(bytes.size());
    most = static_cast<std::int64_t>(0.95 * share * static_cast<double>(most));
  }
  return bytes;
}

}  // namespace

std::string estimate_report(const Estimate& answer, EstimateContext& context,
                            const ReportAbout& about) {
  const Result& result = answer.result;
  const Scenario& scenario = result.scenario;
  const OperationList operations = step_operations(scenario, context, result.busiest_stage);
  std::string html = key_figures(result);
  html += critical_section(result) + stages_section(result) + kinds_section(result) +
          routing_section(result) + timeline_place() + views_section(result, operations) +
          memory_section(result);
  if (result.bill)
    html += heading(bill_head(*result.bill)) + bill_table(*result.bill).html() + "<p>" +
            escaped(bill_note(*result.bill)) + "</p>";
  html += basis_section(result);
  ReportPage page{.title = title(result),
                  .about = {joined(plan_items(scenario.plan)), "Orrery " ORRERY_VERSION},
                  .command = about.command,
                  .body = std::move(html),
                  .result = result_json(result, {.about_this_run = false}),
                  .data = {},
                  .timeline = ""};
  const RoutedLoads& loads = *context.loads(scenario);
  page.data.emplace_back("memory-data", memory_data(answer, loads));
  page.data.emplace_back("cluster-data", cluster_view(answer));
  page.data.emplace_back("roofline-data",
                         operations_json(operations, {scenario.model.name, scenario.system.name,
                                                      scenario.plan.gpus(), "training step"}));
  if (!routing_items(result).empty())
    page.data.emplace_back("experts-data", experts_view(scenario, loads));
  std::erase_if(page.data, [](const auto& one) {
    return one.first != "memory-data" && one.second.size() > most_bytes_of_a_view;
  });
  page.timeline = timeline_that_fits(answer, space_for_timeline(page));
  return report_html(page);
}

}  // namespace orrery
