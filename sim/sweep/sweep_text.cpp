#include "sim/sweep/sweep_text.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/core/number_text.hpp"
#include "sim/core/quoting.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/training_text.hpp"

namespace orrery {
namespace {

std::string counts(const BestRows& rows) {
  std::string text = grouped(rows.ok()) + " ok, " + grouped(rows.infeasible()) + " infeasible";
  if (rows.failed() > 0) text += ", " + grouped(rows.failed()) + " failed";
  return text;
}

// Rows are merged long after a model's file has gone.
std::optional<Model> model_if_there(const std::string& word) {
  try {
    return read_model(word, {});
  } catch (const Error&) {
    return std::nullopt;
  }
}

// The inputs that all points have in common: keys of one value, and the length of sequences.
std::string heading(const Sweep& sweep) {
  std::map<std::string, std::string> one;
  std::vector<std::string> items;
  bool names_sequence = false;
  for (const Dimension& dimension : sweep.dimensions)
    for (const Axis& axis : dimension.axes) {
      names_sequence = names_sequence || axis.key == "seq";
      if (axis.values.size() == 1) one[axis.key] = axis.values.front().text;
    }
  if (!sweep.plan.file.empty()) items.push_back("plan " + sweep.plan.file);
  for (const std::string& key : axis_keys())
    if (one.contains(key) && key != "model" && key != "system" && !sweep.plan.keys.contains(key))
      items.push_back(key + " " + one[key]);
  if (!names_sequence && one.contains("model"))
    if (const auto model = model_if_there(one["model"]))
      items.push_back(usual_sequence_text(*model));
  const auto word = [&](const char* key, const char* several) {
    return one.contains(key) ? one[key] : std::string{several};
  };
  return run_heading(word("model", "several models") + " on " + word("system", "several systems"),
                     items);
}

std::vector<const Axis*> axes_that_vary(const Sweep& sweep) {
  std::vector<const Axis*> axes;
  for (const Dimension& dimension : sweep.dimensions)
    for (const Axis& axis : dimension.axes)
      if (axis.values.size() > 1) axes.push_back(&axis);
  return axes;
}

// The command that computes this row alone.
std::string estimate_command(const Sweep& sweep, const BestRows& rows, const Row& row) {
  std::string text = "orrery estimate";
  if (!sweep.plan.file.empty()) text += " --plan " + shell_word(sweep.plan.file);
  for (const Dimension& dimension : sweep.dimensions)
    for (const Axis& axis : dimension.axes)
      if (!sweep.plan.keys.contains(axis.key))
        text += " --" + axis.key + " " + rows.cell(row, axis.key).text;
  return text;
}

Table best_table(const Sweep& sweep, const BestRows& rows, std::size_t shown) {
  std::vector<std::string> varied;
  for (const Axis* axis : axes_that_vary(sweep)) varied.push_back(axis->key);
  std::vector<Column> columns;
  for (const std::string& key : varied) columns.push_back({key});
  if (!sweep.memory_only) columns.insert(columns.end(), {{"step time"}, {"tokens/s/GPU"}, {"MFU"}});
  columns.push_back({"memory a GPU"});
  Table table{std::move(columns)};
  for (std::size_t i = 0; i < shown; ++i) {
    const Row& row = rows.best()[i].row;
    std::vector<std::string> cells;
    const auto number = [&](const char* name) { return rows.cell(row, name).number; };
    for (const std::string& key : varied) cells.push_back(rows.cell(row, key).text);
    if (!sweep.memory_only) {
      cells.push_back(duration_text(Seconds{number("step_time_s")}));
      cells.push_back(fixed(number("tokens_per_s_per_gpu"), 1));
      cells.push_back(percent(number("mfu")));
    }
    cells.push_back(bytes_text(Bytes{number("memory_peak_bytes")}));
    table.add_row(std::move(cells));
  }
  return table;
}

}  // namespace

Document sweep_document(const Sweep& sweep, const BestRows& rows, std::size_t shown) {
  Document document;
  document.title(heading(sweep) + "\n");
  document.paragraph(grouped(rows.rows()) + " points: " + counts(rows) + "\n");
  if (rows.best().empty()) return document;
  shown = std::min(shown, rows.best().size());
  const std::string order = sweep.memory_only ? "memory" : "tokens/s/GPU";
  document.gap();
  document.heading(rows.ok() > std::ssize(rows.best()) || shown < rows.best().size()
                       ? "The best " + std::to_string(shown) + " by " + order
                       : "By " + order);
  document.table(best_table(sweep, rows, shown));
  if (sweep.memory_only) return document;
  document.gap();
  document.paragraph("To estimate the first in full:\n");
  document.command(estimate_command(sweep, rows, rows.best().front().row));
  return document;
}

std::string sweep_rows_json(const Sweep& sweep, const BestRows& rows) {
  using Json = nlohmann::ordered_json;
  const std::vector<const Axis*> axes = axes_that_vary(sweep);
  Json axes_json = Json::array(), list = Json::array();
  std::vector<std::map<std::string, std::size_t>> places;
  for (const Axis* axis : axes) {
    Json values = Json::array();
    places.emplace_back();
    for (const AxisValue& value : axis->values) {
      places.back()[value.text] = values.size();
      values.push_back(value.text);
    }
    axes_json.push_back({{"key", axis->key}, {"values", std::move(values)}});
  }
  for (const BestRows::Best& one : rows.best()) {
    const Row& row = one.row;
    const auto number = [&](const char* column) { return rows.cell(row, column).number; };
    Json at = Json::array();
    for (std::size_t i = 0; i < axes.size(); ++i)
      at.push_back(places[i].at(rows.cell(row, axes[i]->key).text));
    Json json{{"at", std::move(at)},
              {"memory_bytes", number("memory_peak_bytes")},
              {"capacity_bytes", number("memory_capacity_bytes")}};
    if (!sweep.memory_only)
      for (const char* figure : {"step_time_s", "tokens_per_s_per_gpu", "mfu"})
        json[figure] = number(figure);
    if (sweep.tokens) {
      json["training_time_s"] = number("bill_training_time_s");
      if (rows.has(row, "bill_rent_usd_low"))
        json["rent_usd"] = {{"low", number("bill_rent_usd_low")},
                            {"high", number("bill_rent_usd_high")}};
    }
    list.push_back(std::move(json));
  }
  return Json{{"schema", "orrery.sweep_rows/1"},
              {"points", rows.rows()},
              {"ok", rows.ok()},
              {"infeasible", rows.infeasible()},
              {"failed", rows.failed()},
              {"axes", std::move(axes_json)},
              {"rows", std::move(list)}}
             .dump(-1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

}  // namespace orrery
