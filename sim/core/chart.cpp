#include "sim/core/chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>

#include "sim/core/number_text.hpp"

namespace orrery {
namespace {

// The smallest 1, 2 or 5 times a power of ten that divides the range into at most `most` steps.
double round_step(double range, int most) {
  const double rough = range / most;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10.0 * power;
}

int decimals_of(double step) {
  return std::max(0, static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
}

bool is_time(const std::string& name) { return name.ends_with("_s") && !name.ends_with("per_s"); }

DisplayUnit unit_of(const std::string& name, double most) {
  if (name.ends_with("_bytes")) return bytes_unit(Bytes{most});
  if (is_time(name)) return time_unit(Seconds{most});
  return {"", 1.0};
}

}  // namespace

ChartScale ChartScale::linear(const std::string& name, double first, double last, double begin,
                              double end) {
  // One value alone, or differences that are rounding, shall not fill the axis.
  const double least = std::max({std::abs(first), std::abs(last), 1e-9}) * 1e-3;
  if (last - first < least) {
    first -= least;
    last += least;
  }
  ChartScale scale;
  const double margin = 0.04 * (last - first);
  scale.first_ = first >= 0.0 ? std::max(0.0, first - margin) : first - margin;
  scale.last_ = last + margin;
  scale.begin_ = begin;
  scale.end_ = end;
  constexpr int most_ticks = 7;
  const DisplayUnit unit = unit_of(name, scale.last_);
  const double step = round_step((scale.last_ - scale.first_) / unit.si, most_ticks);
  const std::string behind = unit.name.empty() ? "" : " " + std::string{unit.name};
  for (double i = std::ceil(scale.first_ / unit.si / step); i * step * unit.si <= scale.last_;
       i += 1.0)
    scale.ticks_.push_back({i * step * unit.si, fixed(i * step, decimals_of(step)) + behind});
  return scale;
}

ChartScale ChartScale::places(std::vector<std::string> labels, double begin, double end) {
  ChartScale scale;
  scale.first_ = -0.5;
  scale.last_ = static_cast<double>(labels.size()) - 0.5;
  scale.begin_ = begin;
  scale.end_ = end;
  for (std::size_t i = 0; i < labels.size(); ++i)
    scale.ticks_.push_back({static_cast<double>(i), std::move(labels[i])});
  return scale;
}

ChartScale ChartScale::logarithmic(const std::vector<double>& values, double begin, double end) {
  ChartScale scale;
  scale.logarithmic_ = true;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double margin = 0.04 * std::max(std::log2(*most / *least), 1.0);
  scale.first_ = std::log2(*least) - margin;
  scale.last_ = std::log2(*most) + margin;
  scale.begin_ = begin;
  scale.end_ = end;
  for (const double value : values)
    scale.ticks_.push_back({value, fixed(value, value == std::floor(value) ? 0 : 2)});
  return scale;
}

ChartScale ChartScale::logarithmic(double first, double last, const std::vector<double>& values,
                                   double begin, double end) {
  ChartScale scale;
  scale.logarithmic_ = true;
  scale.first_ = std::log2(first);
  scale.last_ = std::log2(last);
  scale.begin_ = begin;
  scale.end_ = end;
  for (const double value : values)
    if (value >= first && value <= last)
      scale.ticks_.push_back(
          {value,
           fixed(value, value >= 1.0 ? 0 : static_cast<int>(std::ceil(-std::log10(value))))});
  return scale;
}

double ChartScale::scaled(double value) const { return logarithmic_ ? std::log2(value) : value; }

double ChartScale::pixel(double value) const {
  return begin_ + (scaled(value) - first_) / (last_ - first_) * (end_ - begin_);
}

std::string figure_label(const std::string& name, double value) {
  if (name.ends_with("_bytes")) return bytes_text(Bytes{value});
  if (is_time(name)) return duration_text(Seconds{value});
  if (value == std::floor(value) || std::abs(value) >= 1e3) return fixed(value, 0);
  return fixed(value, std::abs(value) >= 100.0 ? 1 : 3);
}

namespace {

constexpr double character = 6.5;  // Average width at size 12, in pixels.

const std::string grey = "#888";
const std::string light = "#e4e4e4";

}  // namespace

const std::string& series_colour(std::size_t series) {
  static const std::string colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                        "#e69f00", "#56b4e9", "#000000"};
  return colours[series % std::size(colours)];
}

void draw_frame(Svg& svg, const ChartText& text, const ChartScale& x, const ChartScale& y,
                bool grid_lines) {
  using F = ChartFrame;
  svg.text({F::left, 26}, text.title, {.size = 16, .bold = true});
  if (!text.subtitle.empty()) svg.text({F::left, 46}, text.subtitle, {.colour = "#555"});
  double taken = -1e9;
  for (const Tick& tick : x.ticks()) {
    const double at = x.pixel(tick.at);
    if (grid_lines) svg.line({at, F::top}, {at, F::bottom}, light);
    const double half = 0.5 * character * static_cast<double>(tick.label.size());
    if (at - half < taken + character) continue;
    taken = at + half;
    svg.text({at, F::bottom + 20}, tick.label, {.anchor = Anchor::middle});
  }
  taken = 1e9;
  for (const Tick& tick : y.ticks()) {
    const double at = y.pixel(tick.at);
    if (grid_lines) svg.line({F::left, at}, {F::right, at}, light);
    if (at > taken - 14.0) continue;
    taken = at;
    svg.text({F::left - 8, at + 4}, tick.label, {.anchor = Anchor::end});
  }
  svg.line({F::left, F::bottom}, {F::right, F::bottom}, grey);
  svg.line({F::left, F::top}, {F::left, F::bottom}, grey);
  svg.text({0.5 * (F::left + F::right), F::bottom + 46}, text.x,
           {.size = 13, .anchor = Anchor::middle});
  svg.text({20, 0.5 * (F::top + F::bottom)}, text.y,
           {.size = 13, .anchor = Anchor::middle, .upwards = true});
}

AxisScale scale_of(const ChartAxis& axis, double begin, double end) {
  constexpr double wide = 8.0;
  const auto& numbers = axis.numbers;
  if (numbers.empty() || numbers.size() < 2) return {ChartScale::places(axis.labels, begin, end)};
  if (numbers.front() > 0.0 && numbers.back() >= wide * numbers.front())
    return {ChartScale::logarithmic(numbers, begin, end), true};
  return {ChartScale::linear("", numbers.front(), numbers.back(), begin, end), true};
}

namespace {

using F = ChartFrame;

struct Span {
  double least = std::numeric_limits<double>::infinity();
  double most = -std::numeric_limits<double>::infinity();
  void add(double value) {
    least = std::min(least, value);
    most = std::max(most, value);
  }
};

// Dark blue over green to yellow, rising in lightness, so that grey prints keep the order: nine of
// the 256 colours of matplotlib's viridis (CC0).
using Colour = std::array<double, 3>;
constexpr Colour viridis[] = {{68, 1, 84},    {71, 44, 122},  {59, 81, 139},
                              {44, 113, 142}, {33, 144, 141}, {39, 173, 129},
                              {92, 200, 99},  {170, 220, 50}, {253, 231, 37}};

Colour colour_at(double share) {
  const double place = std::clamp(share, 0.0, 1.0) * (std::size(viridis) - 1);
  const auto below = std::min(static_cast<std::size_t>(place), std::size(viridis) - 2);
  Colour colour{};
  for (std::size_t i = 0; i < 3; ++i)
    colour[i] = viridis[below][i] +
                (place - static_cast<double>(below)) * (viridis[below + 1][i] - viridis[below][i]);
  return colour;
}

std::string hexadecimal(const Colour& colour) {
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", static_cast<unsigned>(std::lround(colour[0])),
                static_cast<unsigned>(std::lround(colour[1])),
                static_cast<unsigned>(std::lround(colour[2])));
  return text;
}

// ITU-R BT.601's weights of what the eye takes for light.
bool is_dark(const Colour& colour) {
  return 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2] < 140.0;
}

}  // namespace

std::string line_chart(const ChartText& text, const ChartAxis& x,
                       const std::vector<ChartSeries>& series) {
  Span span;
  for (const ChartSeries& one : series)
    for (const auto& value : one.values)
      if (value) span.add(*value);
  const AxisScale across = scale_of(x, F::left, F::right);
  const ChartScale up = ChartScale::linear(text.y, span.least, span.most, F::bottom, F::top);
  Svg svg{F::width, F::height};
  draw_frame(svg, text, across.scale, up, true);
  for (std::size_t i = 0; i < series.size(); ++i) {
    const std::string& colour = series_colour(i);
    std::vector<Svg::Point> run;  // Values without a gap.
    const auto draw = [&] {
      if (run.size() > 1) svg.polyline(run, colour, 2.0);
      run.clear();
    };
    for (std::size_t place = 0; place < series[i].values.size(); ++place) {
      const auto& value = series[i].values[place];
      if (!value) {
        draw();
        continue;
      }
      run.emplace_back(across.pixel(x, place), up.pixel(*value));
    }
    draw();
    for (std::size_t place = 0; place < series[i].values.size(); ++place)
      if (const auto& value = series[i].values[place])
        svg.circle({across.pixel(x, place), up.pixel(*value)}, 3.5, colour,
                   (series[i].name.empty() ? "" : series[i].name + ", ") + text.x + " " +
                       x.labels[place] + ": " + figure_label(text.y, *value));
    if (series[i].name.empty()) continue;
    const double at = F::top + 10.0 + 20.0 * static_cast<double>(i);
    svg.line({F::right + 18, at - 4}, {F::right + 40, at - 4}, colour, 2.0);
    svg.text({F::right + 46, at}, series[i].name);
  }
  return svg.document();
}

std::string heat_map(const ChartText& text, const ChartAxis& x, const ChartAxis& y,
                     const std::vector<std::vector<std::optional<double>>>& rows,
                     const std::string& figure) {
  Span span;
  for (const auto& row : rows)
    for (const auto& value : row)
      if (value) span.add(*value);
  const ChartScale across = ChartScale::places(x.labels, F::left, F::right);
  const ChartScale up = ChartScale::places(y.labels, F::bottom, F::top);
  Svg svg{F::width, F::height};
  const double width = (F::right - F::left) / static_cast<double>(x.labels.size());
  const double height = (F::bottom - F::top) / static_cast<double>(y.labels.size());
  constexpr double legible_width = 56.0, legible_height = 18.0;
  const auto share = [&](double value) {
    return span.most > span.least ? (value - span.least) / (span.most - span.least) : 0.5;
  };
  for (std::size_t i = 0; i < rows.size(); ++i)
    for (std::size_t j = 0; j < rows[i].size(); ++j) {
      const double centre = across.pixel(static_cast<double>(j));
      const double middle = up.pixel(static_cast<double>(i));
      const auto& value = rows[i][j];
      const Colour colour = value ? colour_at(share(*value)) : Colour{240, 240, 240};
      svg.rectangle({centre - 0.5 * width, middle - 0.5 * height}, width - 1.0, height - 1.0,
                    hexadecimal(colour));
      if (width < legible_width || height < legible_height) continue;
      svg.text({centre, middle + 4}, value ? figure_label(figure, *value) : "-",
               {.anchor = Anchor::middle, .colour = value && is_dark(colour) ? "#fff" : "#222"});
    }
  draw_frame(svg, text, across, up, false);
  // The scale of colours, as high as the map.
  constexpr int steps = 64;
  const double step = (F::bottom - F::top) / steps;
  for (int i = 0; i < steps; ++i)
    svg.rectangle({F::right + 24, F::bottom - (i + 1) * step}, 16, step + 1.0,
                  hexadecimal(colour_at((i + 0.5) / steps)));
  svg.text({F::right + 46, F::top + 10}, figure_label(figure, span.most));
  svg.text({F::right + 46, F::bottom}, figure_label(figure, span.least));
  return svg.document();
}

std::string pareto_chart(const ChartText& text, const std::vector<ChartPoint>& points,
                         const std::vector<ChartPoint>& frontier) {
  Span wide, high;
  for (const ChartPoint& point : points) {
    wide.add(point.x);
    high.add(point.y);
  }
  const ChartScale across = ChartScale::linear(text.x, wide.least, wide.most, F::left, F::right);
  const ChartScale up = ChartScale::linear(text.y, high.least, high.most, F::bottom, F::top);
  std::size_t longest = 0;
  for (const ChartPoint& point : frontier) longest = std::max(longest, point.name.size());
  Svg svg{std::max(F::width, F::right + 60.0 + 6.0 * static_cast<double>(longest)), F::height};
  draw_frame(svg, text, across, up, true);
  // A pixel is plotted once: millions of points make no larger file.
  std::set<std::pair<long, long>> plotted;
  for (const ChartPoint& point : points) {
    const double x = across.pixel(point.x);
    const double y = up.pixel(point.y);
    if (plotted.emplace(std::lround(x), std::lround(y)).second)
      svg.circle({x, y}, 2.5, "#b5b5b5", point.name);
  }
  std::vector<Svg::Point> line;
  for (const ChartPoint& point : frontier)
    line.emplace_back(across.pixel(point.x), up.pixel(point.y));
  if (line.size() > 1) svg.polyline(line, series_colour(0), 1.5);
  // Numbers that would touch each other, or go beyond the list's end, are left out.
  constexpr int most_listed = 19;
  constexpr double apart = 15.0;
  int listed = 0;
  Svg::Point last{-1e9, -1e9};
  for (std::size_t i = 0; i < frontier.size(); ++i) {
    svg.circle(line[i], 4.5, series_colour(0), frontier[i].name);
    if (listed == most_listed ||
        std::hypot(line[i].first - last.first, line[i].second - last.second) < apart)
      continue;
    last = line[i];
    const std::string mark = std::to_string(++listed);
    svg.text({line[i].first - 6, line[i].second - 7}, mark,
             {.anchor = Anchor::end, .colour = series_colour(0)});
    svg.text({F::right + 14, F::top - 10.0 + 20.0 * listed}, mark + "  " + frontier[i].name,
             {.size = 11});
  }
  return svg.document();
}

}  // namespace orrery
