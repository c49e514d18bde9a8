#include "sim/sweep/row.hpp"

#include <charconv>
#include <nlohmann/json.hpp>

#include "sim/sweep/sweep.hpp"

namespace orrery {
namespace {

std::string beginning(const Grid& grid, std::int64_t point, PointStatus status) {
  std::string text = "{\"point\":" + std::to_string(point);
  const std::vector<const AxisValue*> values = grid.values(point);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool quotes = values[i]->kind == Operand::Kind::text;
    text += "," + json_quoted(grid.axes()[i]->key) + ":";
    text += quotes ? json_quoted(values[i]->text) : values[i]->text;
  }
  return text + ",\"status\":\"" + name(status) + "\"";
}

[[noreturn]] void refuse(const Place& at) {
  fail_input(at, "is not a row of a sweep", "remove the file; its points will be computed again");
}

Cell cell_of(const nlohmann::json& value, const Place& at) {
  if (value.is_string()) return {true, 0.0, value.get<std::string>()};
  if (value.is_boolean()) return {true, 0.0, value.get<bool>() ? "true" : "false"};
  if (!value.is_number()) refuse(at);
  return {false, value.get<double>(), value.dump()};
}

}  // namespace

std::string ok_row(const Grid& grid, std::int64_t point, const RowFigures& figures,
                   const std::string& reason) {
  std::string text = beginning(grid, point, PointStatus::ok);
  if (!reason.empty()) text += ",\"reason\":" + json_quoted(reason);
  for (const auto& [key, value] : figures) text += ",\"" + key + "\":" + value;
  return text + "}";
}

std::string row_without_answer(const Grid& grid, std::int64_t point, PointStatus status,
                               const std::string& reason) {
  return beginning(grid, point, status) + ",\"reason\":" + json_quoted(reason) + "}";
}

std::vector<RowColumn> row_columns(const Sweep& sweep) {
  std::vector<RowColumn> all{{"point", RowColumn::Kind::whole}};
  for (const Dimension& dimension : sweep.dimensions)
    for (const Axis& axis : dimension.axes) {
      const bool number = axis.values.front().kind == Operand::Kind::number;
      all.push_back({axis.key, number ? RowColumn::Kind::whole : RowColumn::Kind::text});
    }
  all.push_back({"status", RowColumn::Kind::text});
  all.push_back({"reason", RowColumn::Kind::text});
  // Any result has all of the names.
  Result blank;
  blank.stages.emplace_back();
  blank.memory.stages.emplace_back();
  if (sweep.tokens) blank.bill.emplace();
  for (const auto& [name, value] :
       sweep.memory_only ? sweep_figures(blank.memory) : sweep_figures(blank))
    all.push_back(
        {name, name.ends_with("_bytes") ? RowColumn::Kind::whole : RowColumn::Kind::real, true});
  return all;
}

Row read_row(const std::string& line, const std::vector<RowColumn>& columns, const Place& at) {
  const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
  if (!json.is_object()) refuse(at);
  Row row(columns.size());
  std::size_t found = 0;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (const auto value = json.find(columns[i].name); value != json.end()) {
      row[i] = cell_of(*value, at);
      ++found;
    }
  if (found != json.size() || !row[0] || row[0]->is_text) refuse(at);
  return row;
}

// A JSON string follows "reason"; it escapes its quotes.
bool is_stopped(const std::string& line) {
  return line.find(",\"status\":\"stopped\",\"reason\":") != line.npos;
}

std::int64_t point_of_row(const std::string& line, const Place& at) {
  constexpr std::string_view head = "{\"point\":";
  std::int64_t point = -1;
  const char* end = line.data() + line.size();
  if (!line.starts_with(head) ||
      std::from_chars(line.data() + head.size(), end, point).ec != std::errc{} || point < 0 ||
      !line.ends_with('}'))
    refuse(at);
  return point;
}

}  // namespace orrery
