#include "sim/output/report/html_report.hpp"

#include <algorithm>
#include <iterator>

#include "sim/base/draw/html_page.hpp"
#include "sim/base/draw/stacked_bars.hpp"
#include "sim/base/text/markup.hpp"
#include "sim/base/text/number_text.hpp"
#include "sim/input/measured/calibration.hpp"
#include "sim/output/report/bill_text.hpp"
#include "sim/output/report/plan_heading.hpp"
#include "sim/output/report/result_items.hpp"
#include "sim/output/report/result_json.hpp"
#include "sim/output/trace/timeline_chart.hpp"

namespace orrery {
namespace {

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ", ") + item;
  return text;
}

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

std::string key_figures(const Result& result) {
  std::string html = "<dl class=\"figures\">\n";
  const auto add = [&](const char* name, const std::string& value, const std::string& more) {
    html += std::string{"<div><dt>"} + name + "</dt><dd>" + escaped(value) + "<small>" +
            escaped(more) + "</small></dd></div>\n";
  };
  const DisplayUnit unit = time_unit(result.step_time);
  const auto amount = [&](Seconds time) { return fixed(time.si() / unit.si, 3); };
  add("step time", amount(result.step_time) + " " + std::string{unit.name},
      amount(result.range.low()) + " .. " + amount(result.range.high()) + " in 9 of 10");
  add("throughput", fixed(result.tokens_per_s_per_gpu, 1) + " tokens/s/GPU",
      fixed(result.tokens_per_s, 0) + " tokens/s");
  add("MFU", percent(result.mfu),
      fixed(result.model_tflops_per_gpu, 1) + " TFLOP/s/GPU; " + percent(result.mfu_full) +
          " if masked scores count too");
  const MemoryReport& memory = result.memory;
  add("memory, fullest GPU", percent(memory.peak() / memory.capacity),
      bytes_text(memory.peak()) + " of " + bytes_text(memory.capacity) + ", stage " +
          grouped(memory.fullest_stage()));
  return html + "</dl>\n";
}

// Colours that people who see few colours can tell apart: blue where the GPU works, warm where it
// communicates, grey where it waits.
constexpr const char* work_colours[] = {"#0072b2", "#004c78", "#56b4e9",
                                        "#88ccee", "#bbbbbb", "#999933"};

std::string critical_section(const Result& result) {
  static constexpr const char* more[] = {"#d55e00", "#ddcc77", "#cc6677", "#882255",
                                         "#aa4499", "#cc79a7", "#000000"};
  StackedBars bars;
  bars.full = result.step_time.si();
  StackedBars::Row row{"step", {}, duration_text(result.step_time)};
  for (std::size_t i = 0; i < step_part_count; ++i) {
    const auto part = static_cast<StepPart>(i);
    const Seconds time = result.critical.parts.sum(part);
    if (time < 5e-4 * result.step_time) continue;
    const char* colour = i < kinds_of_work ? work_colours[i] : more[i - kinds_of_work];
    bars.kinds.push_back({title(part), colour});
    row.parts.push_back(time.si());
  }
  bars.rows.push_back(row);
  return heading(critical_head(result)) + bars.svg([](double seconds) {
    return duration_text(Seconds{seconds});
  }) + critical_table(result, [](const std::string&, bool) { return std::string{}; }).html();
}

std::string stages_section(const Result& result) {
  static constexpr const char* more[] = {"#d55e00", "#ddcc77", "#cc6677", "#e8e8e8", "#882255",
                                         "#aa4499", "#cc79a7", "#d0d0d0", "#000000"};
  StackedBars bars;
  bars.full = result.step_time.si();
  std::vector<std::vector<TimeItem>> items;
  for (const Breakdown& stage : result.stages) {
    items.push_back(compute_items(stage));
    for (const TimeItem& item : other_items(stage)) items.back().push_back(item);
  }
  std::vector<std::size_t> lines;
  for (std::size_t line = 0; line < items.front().size(); ++line) {
    const bool shown = std::any_of(items.begin(), items.end(), [&](const auto& stage) {
      return stage[line].second >= 5e-4 * result.step_time;
    });
    if (!shown) continue;
    lines.push_back(line);
    bars.kinds.push_back({items.front()[line].first,
                          line < kinds_of_work ? work_colours[line] : more[line - kinds_of_work]});
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    StackedBars::Row row{"stage " + grouped(static_cast<std::int64_t>(i)), {}, ""};
    for (const std::size_t line : lines) row.parts.push_back(items[i][line].second.si());
    row.total = percent(result.stages[i].busy() / result.step_time) + " busy";
    bars.rows.push_back(std::move(row));
  }
  return heading("Where the time of a GPU goes, by stage") + bars.svg([](double seconds) {
    return duration_text(Seconds{seconds});
  }) + figures_folded(stage_table(result));
}

std::string routing_section(const Result& result) {
  const std::vector<LabelledItems> lines = routing_items(result);
  if (lines.empty()) return "";
  Table table{{{"", Align::left}, {"", Align::left}}};
  for (const auto& [label, items] : lines) table.add_row({label, joined(items)});
  return heading("Routing " + result.scenario.plan.routing) + table.html();
}

std::string timeline_section(const Result& result, const TrainingStep& step,
                             const Timeline& timeline) {
  const TimelineChart chart = timeline_chart(step, timeline, result.scenario);
  const int simulated = result.roles;
  std::string note = chart.ranks < simulated ? grouped(chart.ranks) + " of the " : "The ";
  note +=
      grouped(simulated) + (simulated == 1 ? " rank that was" : " ranks that were") + " simulated";
  if (simulated < result.scenario.plan.gpus())
    note += std::string{simulated == 1 ? ", which stands for " : ", which stand for "} +
            grouped(result.scenario.plan.gpus());
  return heading("The step over time") + chart.svg +
         paragraph("note",
                   note +
                       ". Numbers are micro-batches. Collectives inside of passes are drawn "
                       "where they were simulated one by one (--expanded: everywhere). To "
                       "look closer, --trace FILE writes this for ui.perfetto.dev.");
}

std::string memory_section(const Result& result) {
  const MemoryReport& report = result.memory;
  StackedBars bars;
  bars.kinds = {{"weights", "#0072b2"},
                {"gradients", "#e69f00"},
                {"optimizer", "#cc79a7"},
                {"activations", "#009e73"},
                {"other", "#999"}};
  bars.limit = report.capacity.si();
  bars.limit_name = "GPU " + bytes_text(report.capacity);
  bars.full = std::max(report.capacity, report.peak()).si();
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
    StackedBars::Row row{"stage " + grouped(static_cast<std::int64_t>(i)), {}, ""};
    std::vector<std::string> cells{grouped(static_cast<std::int64_t>(i))};
    for (Bytes part :
         {stage.weights, stage.gradients, stage.optimizer, stage.activations, stage.other}) {
      row.parts.push_back(part.si());
      cells.push_back(bytes_text(part));
    }
    row.total = percent(stage.peak() / report.capacity);
    cells.push_back(bytes_text(stage.peak()));
    cells.push_back(row.total);
    bars.rows.push_back(std::move(row));
    table.add_row(std::move(cells));
  }
  return heading("Memory of a GPU") +
         bars.svg([](double bytes) { return bytes_text(Bytes{bytes}); }) + figures_folded(table);
}

std::string basis_section(const Result& result) {
  const System& system = result.scenario.system;
  std::string html =
      heading("What it rests on") +
      paragraph("note", "Times of kernels and collectives: " + joined(basis_items(result)) + "." +
                            (system.calibration
                                 ? " Measured by " + shown_text(system.calibration->file) + "."
                                 : ""));
  for (const std::string& warning : result.warnings) html += paragraph("warning", warning);
  return html;
}

}  // namespace

std::string html_report(const Result& result, const TrainingStep& step, const Timeline& timeline,
                        const std::string& more) {
  std::string html = paragraph("plan", joined(plan_items(result.scenario.plan)));
  html += key_figures(result) + critical_section(result) + stages_section(result) +
          routing_section(result) + timeline_section(result, step, timeline) +
          memory_section(result);
  if (!result.links.empty())
    html += heading("Links: the busiest of each class, and by whom") + link_table(result).html();
  if (result.bill)
    html += heading(bill_head(*result.bill)) + bill_table(*result.bill).html() + "<p>" +
            escaped(bill_note(*result.bill)) + "</p>";
  html += more + basis_section(result);
  return html_page(title(result),
                   html + json_element(result_json(result, {.about_this_run = false})));
}

}  // namespace orrery
