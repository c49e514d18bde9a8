#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/core/chart.hpp"
#include "sim/core/nearest.hpp"
#include "sim/core/value_list.hpp"
#include "sim/sweep/best_rows.hpp"
#include "sim/sweep/sweep_folder.hpp"
#include "sim/sweep/sweep_text.hpp"

namespace orrery {
namespace {

// The columns of a sweep, by their use in a chart.
struct Plottable {
  std::vector<RowColumn> columns;
  std::vector<const Axis*> varied;
  std::vector<std::string> keys, figures;
  std::string given;  ///< Fixed values: "llama3-8b, dgx-h100, gpus 64".

  explicit Plottable(const Sweep& sweep) : columns{row_columns(sweep)} {
    for (const Dimension& dimension : sweep.dimensions)
      for (const Axis& axis : dimension.axes) {
        if (axis.values.size() > 1) {
          varied.push_back(&axis);
          keys.push_back(axis.key);
          continue;
        }
        const bool is_clear = axis.key == "model" || axis.key == "system";
        given += (given.empty() ? "" : ", ") + (is_clear ? "" : axis.key + " ") +
                 axis.values.front().text;
      }
    for (const RowColumn& column : columns)
      if (column.is_figure) figures.push_back(column.name);
  }

  std::size_t at(const std::string& name) const {
    const auto found = std::find_if(columns.begin(), columns.end(),
                                    [&](const RowColumn& column) { return column.name == name; });
    return static_cast<std::size_t>(found - columns.begin());
  }

  const Axis& axis(const std::string& name, const std::string& option) const {
    const auto found = std::find(keys.begin(), keys.end(), name);
    if (found == keys.end())
      fail_input({"", option}, "'" + shown_text(name) + "' is not a key that the sweep varies",
                 keys.empty() ? "a sweep of one point has no plot" : suggestion(name, keys));
    return *varied[static_cast<std::size_t>(found - keys.begin())];
  }

  void require_figure(const std::string& name, const std::string& option) const {
    choice<std::size_t>(name, {"", option}, "is not a figure of the sweep", figures);
  }
};

// Numbers rising, words as the sweep has them; and the place of each value.
struct PlotAxis {
  ChartAxis chart;
  std::map<std::string, std::size_t> place_of;

  explicit PlotAxis(const Axis& axis) {
    std::vector<const AxisValue*> values;
    for (const AxisValue& value : axis.values) values.push_back(&value);
    const bool numbers = axis.values.front().kind == Operand::Kind::number;
    if (numbers)
      std::sort(values.begin(), values.end(),
                [](const AxisValue* a, const AxisValue* b) { return a->number < b->number; });
    for (const AxisValue* value : values) {
      place_of.emplace(value->text, chart.labels.size());
      chart.labels.push_back(value->text);
      if (numbers) chart.numbers.push_back(value->number);
    }
  }
};

template <class Action>
void for_each_ok(const SweepFolder& folder, const Plottable& plottable, Action action) {
  const std::size_t status = plottable.at("status");
  std::int64_t ok = 0;
  for_each_row(folder, plottable.columns, [&](const std::string&, const Row& row) {
    if (!row[status] || row[status]->text != name(PointStatus::ok)) return;
    ++ok;
    action(row);
  });
  if (ok == 0) fail_input({folder.path, ""}, "has no row that is ok", "there is nothing to draw");
}

void keep_best(std::optional<double>& best, double value, const std::string& figure) {
  if (!best || (less_is_better(figure) ? value < *best : value > *best)) best = value;
}

// "the best over mbs, pp", of the keys that the chart does not show.
std::string best_over(const Plottable& plottable, const std::vector<std::string>& shown) {
  std::vector<std::string> others = plottable.keys;
  std::erase_if(others, [&](const std::string& key) {
    return std::find(shown.begin(), shown.end(), key) != shown.end();
  });
  return others.empty() ? "" : "; the best over " + joined(others);
}

std::string line_plot(const SweepFolder& folder, const Plottable& plottable, PlotRequest request) {
  if (request.x.empty() && !plottable.keys.empty()) {
    // A number makes the better axis, and the longest the best.
    const Axis* longest = plottable.varied.front();
    for (const Axis* axis : plottable.varied) {
      const auto rank = [](const Axis& a) {
        return std::pair{a.values.front().kind == Operand::Kind::number, a.values.size()};
      };
      if (rank(*axis) > rank(*longest)) longest = axis;
    }
    request.x = longest->key;
  }
  if (request.y.empty()) request.y = plottable.figures.empty() ? "" : usual_figure(folder.sweep);
  const PlotAxis x{plottable.axis(request.x, "--x")};
  plottable.require_figure(request.y, "--y");
  if (request.by.empty())
    for (const std::string& key : plottable.keys)
      if (key != request.x && request.by.empty()) request.by = key;
  std::vector<ChartSeries> series;
  std::map<std::string, std::size_t> series_of;
  if (request.by.empty()) {
    series.push_back({"", {}});
  } else {
    const PlotAxis by{plottable.axis(request.by, "--by")};
    for (const std::string& label : by.chart.labels) {
      series_of.emplace(label, series.size());
      series.push_back({request.by + " " + label, {}});
    }
  }
  for (ChartSeries& one : series) one.values.resize(x.chart.labels.size());
  const std::size_t x_at = plottable.at(request.x), y_at = plottable.at(request.y);
  const std::size_t by_at = plottable.at(request.by);
  for_each_ok(folder, plottable, [&](const Row& row) {
    const std::size_t which = request.by.empty() ? 0 : series_of.at(row[by_at]->text);
    if (row[y_at])
      keep_best(series[which].values[x.place_of.at(row[x_at]->text)], row[y_at]->number, request.y);
  });
  std::erase_if(series, [](const ChartSeries& one) {
    return std::none_of(one.values.begin(), one.values.end(),
                        [](const auto& value) { return value.has_value(); });
  });
  return line_chart(
      {request.y + " over " + request.x,
       plottable.given + best_over(plottable, {request.x, request.by}), request.x, request.y},
      x.chart, series);
}

std::string heat_plot(const SweepFolder& folder, const Plottable& plottable, PlotRequest request) {
  if (request.x.empty() && !plottable.keys.empty()) request.x = plottable.keys.back();
  for (const std::string& key : plottable.keys)
    if (request.y.empty() && key != request.x) request.y = key;
  if (request.figure.empty()) request.figure = usual_figure(folder.sweep);
  const PlotAxis x{plottable.axis(request.x, "--x")};
  const PlotAxis y{plottable.axis(request.y, "--y")};
  plottable.require_figure(request.figure, "--figure");
  std::vector<std::vector<std::optional<double>>> rows(
      y.chart.labels.size(), std::vector<std::optional<double>>(x.chart.labels.size()));
  const std::size_t x_at = plottable.at(request.x), y_at = plottable.at(request.y);
  const std::size_t figure_at = plottable.at(request.figure);
  for_each_ok(folder, plottable, [&](const Row& row) {
    if (row[figure_at])
      keep_best(rows[y.place_of.at(row[y_at]->text)][x.place_of.at(row[x_at]->text)],
                row[figure_at]->number, request.figure);
  });
  return heat_map({request.figure, plottable.given + best_over(plottable, {request.x, request.y}),
                   request.x, request.y},
                  x.chart, y.chart, rows, request.figure);
}

// Points within a thousandth of another one look the same.
constexpr std::size_t many_points = 200'000;

std::vector<ChartPoint> thinned(const std::vector<ChartPoint>& points, bool less_x, bool less_y) {
  std::vector<ChartPoint> kept = pareto_frontier(points, less_x, less_y);
  std::set<std::pair<long, long>> cells;
  const auto cell = [](double value) {
    return std::lround(1e3 * std::log(std::abs(value) + 1e-12));
  };
  for (const ChartPoint& point : points)
    if (cells.emplace(cell(point.x), cell(point.y)).second) kept.push_back(point);
  return kept;
}

std::string pareto_plot(const SweepFolder& folder, const Plottable& plottable,
                        PlotRequest request) {
  if (request.x.empty()) request.x = "memory_peak_bytes";
  if (request.y.empty()) request.y = usual_figure(folder.sweep);
  plottable.require_figure(request.x, "--x");
  plottable.require_figure(request.y, "--y");
  const std::size_t x_at = plottable.at(request.x), y_at = plottable.at(request.y);
  const bool less_x = less_is_better(request.x), less_y = less_is_better(request.y);
  std::vector<ChartPoint> points;
  for_each_ok(folder, plottable, [&](const Row& row) {
    if (!row[x_at] || !row[y_at]) return;
    std::string keys;
    for (const std::string& key : plottable.keys)
      keys += (keys.empty() ? "" : ", ") + key + " " + row[plottable.at(key)]->text;
    points.push_back({row[x_at]->number, row[y_at]->number, keys});
    if (points.size() >= many_points) points = thinned(points, less_x, less_y);
  });
  const auto direction = [](const std::string& figure) {
    return (less_is_better(figure) ? "less " : "more ") + figure;
  };
  return pareto_chart({request.y + " against " + request.x,
                       plottable.given + "; what no other plan beats in both: " +
                           direction(request.y) + ", " + direction(request.x),
                       request.x, request.y},
                      points, pareto_frontier(points, less_x, less_y));
}

}  // namespace

std::string plot_svg(const SweepFolder& folder, const PlotRequest& request) {
  const Plottable plottable{folder.sweep};
  switch (request.kind) {
    case PlotRequest::Kind::line:
      return line_plot(folder, plottable, request);
    case PlotRequest::Kind::heat:
      return heat_plot(folder, plottable, request);
    default:
      return pareto_plot(folder, plottable, request);
  }
}

}  // namespace orrery
