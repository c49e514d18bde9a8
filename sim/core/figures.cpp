#include "sim/core/figures.hpp"

#include <algorithm>

#include "sim/core/quoting.hpp"

namespace orrery {
namespace {

bool is_unknown(const Figures::Json& value) {
  return value.is_object() && !value.empty() &&
         std::all_of(value.begin(), value.end(),
                     [](const Figures::Json& member) { return member.is_null(); });
}

std::string cell_of(const Figures::Json& value, std::string (*number)(double)) {
  if (value.is_null()) return "";
  if (value.is_number_float()) return number(value.get<double>());
  return value.is_string() ? csv_text(value.get<std::string>()) : csv_cell(value.dump());
}

// The item with the most of what `parts` gives.
template <class Parts>
auto most_of(const std::vector<Figures>& items, const Parts& parts) {
  decltype(parts(items.front())) most;
  for (const Figures& item : items)
    if (auto own = parts(item); own.size() > most.size()) most = std::move(own);
  return most;
}

}  // namespace

Figures::Figure& Figures::Figure::shown(Column in, std::string words) {
  column = std::move(in);
  text = std::move(words);
  return *this;
}

Figures::Figure& Figures::Figure::json_only() { return in_csv = false, *this; }
Figures::Figure& Figures::Figure::csv_only() { return in_json = false, *this; }

Figures::Figure& Figures::add(std::string key, Figures::Json value) {
  Figure& figure = figures_.emplace_back();
  figure.key = std::move(key);
  figure.value = std::move(value);
  return figure;
}

void Figures::show(Column column, std::string text) {
  Figure& figure = figures_.emplace_back();
  figure.in_json = figure.in_csv = false;
  figure.shown(std::move(column), std::move(text));
}

Figures::Json Figures::json() const {
  Figures::Json json = Json::object();
  for (const Figure& figure : figures_) {
    if (!figure.in_json) continue;
    const std::size_t slash = figure.key.find('/');
    Figures::Json& at = slash == std::string::npos
                            ? json[figure.key]
                            : json[figure.key.substr(0, slash)][figure.key.substr(slash + 1)];
    if (!is_unknown(figure.value)) at = figure.value;
  }
  return json;
}

std::vector<Column> Figures::columns() const {
  std::vector<Column> columns;
  for (const Figure& figure : figures_)
    if (figure.text) columns.push_back(figure.column);
  return columns;
}

std::vector<std::string> Figures::cells() const {
  std::vector<std::string> cells;
  for (const Figure& figure : figures_)
    if (figure.text) cells.push_back(*figure.text);
  return cells;
}

std::vector<std::pair<std::string, std::string>> Figures::csv(std::string (*number)(double)) const {
  std::vector<std::pair<std::string, std::string>> cells;
  for (const auto& figure : figures_) {
    if (!figure.in_csv) continue;
    const std::string key = figure.key.substr(figure.key.find('/') + 1);  // npos + 1 is 0.
    if (!figure.value.is_object()) cells.emplace_back(key, cell_of(figure.value, number));
    if (figure.value.is_object())
      for (const auto& [member, value] : figure.value.items())
        cells.emplace_back(member == "middle" ? key : key + "_" + member, cell_of(value, number));
  }
  return cells;
}

Table table_of(const std::vector<Figures>& items, int indent) {
  Table table{most_of(items, [](const Figures& item) { return item.columns(); }), indent};
  for (const Figures& item : items) table.add_row(item.cells());
  return table;
}

std::string csv_of(const std::vector<Figures>& items, std::string (*number)(double)) {
  const auto all = most_of(items, [&](const Figures& item) { return item.csv(number); });
  std::string text;
  const auto add_line = [&](const auto& cell_at) {
    for (std::size_t i = 0; i < all.size(); ++i) text += (i > 0 ? "," : "") + cell_at(i);
    text += "\n";
  };
  add_line([&](std::size_t i) { return all[i].first; });
  for (const Figures& item : items) {
    const auto own = item.csv(number);
    add_line([&](std::size_t i) {
      const auto found = std::find_if(own.begin(), own.end(),
                                      [&](const auto& one) { return one.first == all[i].first; });
      return found == own.end() ? std::string{} : found->second;
    });
  }
  return text;
}

std::string all_digits(double value) { return Figures::Json(value).dump(); }

}  // namespace orrery
