#include "sim/core/chart_frame.hpp"

#include <algorithm>

namespace orrery {
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

}  // namespace orrery
