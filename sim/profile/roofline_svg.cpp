// The roofline as a drawing.
#include <algorithm>
#include <cmath>

#include "sim/core/chart_frame.hpp"
#include "sim/core/number_text.hpp"
#include "sim/profile/roofline_axes.hpp"

namespace orrery {
namespace {

using F = ChartFrame;

const std::string& colour_of(const std::string& kind) {
  static const std::pair<std::string, std::string> colours[] = {
      {"gemm", "#0072b2"}, {"experts", "#004c78"}, {"attention", "#d55e00"}, {"vector", "#009e73"}};
  for (const auto& [name, colour] : colours)
    if (name == kind) return colour;
  return colours[0].second;
}

const char* words_of(const std::string& kind) {
  if (kind == "gemm") return "matrix products";
  if (kind == "experts") return "products of experts";
  if (kind == "attention") return "attention";
  return "vector kernels";
}

std::string described(const OperationPrice& one, Seconds whole) {
  std::string text = one.name;
  if (!one.when.empty()) text += ", " + one.when;
  if (!one.sizes.empty()) text += ", " + one.sizes;
  text += ": " + fixed(one.roofs.ops_per_byte(), 1) + " operations a byte, " +
          fixed(one.reached().si() / 1e12, 1) + " TFLOP/s, " + percent(one.share_of_roof()) +
          " of its roof, " + duration_text(one.time);
  if (one.count > 1.0)
    text += ", " + grouped(std::llround(one.count)) + " times, " + percent(one.all_time() / whole) +
            " of the time";
  return text;
}

void draw_roofs(Svg& svg, const RooflineChart& roofline, const RooflineAxes& axes,
                const ChartScale& x, const ChartScale& y) {
  const double memory = roofline.roofs.memory.si() / 1e12;  // TFLOP/s an operation a byte.
  double highest = 0.0;
  double written = -1e9;
  for (const DrawnRoof& roof : drawn_roofs(roofline)) {
    const double ridge = roof.tflops / memory;
    if (roof.tflops > axes.y_last || ridge > axes.x_last) continue;
    highest = std::max(highest, roof.tflops);
    svg.line({x.pixel(ridge), y.pixel(roof.tflops)}, {x.pixel(axes.x_last), y.pixel(roof.tflops)},
             roof.used ? "#222" : "#bbb", roof.used ? 2.0 : 1.0);
    const double at = y.pixel(roof.tflops) - 5.0;
    if (at - written < 14.0) continue;  // Names shall not lie over each other.
    written = at;
    const std::string name = roof.name + " " + fixed(roof.tflops, 0) + " TFLOP/s";
    // Operations of a higher roof may lie at the right end of a lower one.
    if (roof.tflops == highest)
      svg.text({F::right - 4.0, at}, name, {.size = 11, .anchor = Anchor::end});
    else
      svg.text({x.pixel(ridge) + 8.0, at + 16.0}, name,
               {.size = 11, .colour = roof.used ? "#222" : "#999"});
  }
  const double begin = std::max(axes.x_first, axes.y_first / memory);
  const double end = std::min({axes.x_last, axes.y_last / memory, highest / memory});
  svg.line({x.pixel(begin), y.pixel(begin * memory)}, {x.pixel(end), y.pixel(end * memory)}, "#222",
           2.0);
  const double middle = std::sqrt(begin * end);
  svg.text({x.pixel(middle) - 10.0, y.pixel(middle * memory) - 4.0},
           "memory " + fixed(roofline.roofs.memory.si() / 1e9, 0) + " GB/s",
           {.size = 11, .anchor = Anchor::end});
}

}  // namespace

std::string roofline_svg(const RooflineChart& roofline) {
  const RooflineAxes axes{roofline};
  const ChartScale x =
      ChartScale::logarithmic(axes.x_first, axes.x_last, axes.x_ticks(), F::left, F::right);
  const ChartScale y =
      ChartScale::logarithmic(axes.y_first, axes.y_last, axes.y_ticks(), F::bottom, F::top);
  Seconds whole;
  for (const OperationPrice& one : roofline.operations) whole += one.all_time();

  constexpr double legend = 330.0;
  Svg svg{F::right + legend, F::height};
  draw_frame(svg, {roofline.title, roofline.subtitle, "operations a byte", "TFLOP/s"}, x, y, true);
  draw_roofs(svg, roofline, axes, x, y);

  std::vector<Svg::Point> line;
  std::vector<std::string> kinds;
  struct Mark {
    Svg::Point at;
    std::string letter;
    bool inside = false;  ///< Its circle.
  };
  std::vector<Mark> marks;
  std::size_t drawn = 0;
  constexpr std::size_t most_listed = 22;
  for (const OperationPrice& one : roofline.operations) {
    if (!is_drawn(one)) continue;
    const Svg::Point at{x.pixel(one.roofs.ops_per_byte()),
                        y.pixel(std::max(axes.y_first, one.reached().si() / 1e12))};
    const double share = one.all_time() / whole;
    const double radius = roofline.sweep ? 4.0 : std::clamp(40.0 * std::sqrt(share), 3.0, 22.0);
    svg.circle(at, radius, colour_of(one.kind), described(one, whole), 0.75);
    if (std::find(kinds.begin(), kinds.end(), one.kind) == kinds.end()) kinds.push_back(one.kind);
    line.push_back(at);
    if (drawn < most_listed) {
      const std::string mark = roofline_mark(drawn);
      const bool inside = radius >= 9.0;
      marks.push_back({{at.first + (inside ? 0.0 : radius + 2.0), at.second + 4.0}, mark, inside});
      std::string entry = one.name;
      if (roofline.sweep)
        entry = one.sizes;
      else if (one.count > 1.0 || !one.when.empty())
        entry +=
            (one.when.empty() ? "" : " (" + one.when + ")") + std::string{", "} + percent(share);
      const double row = F::top + 8.0 + 16.0 * static_cast<double>(drawn);
      svg.text({F::right + 18, row}, mark, {.size = 11, .bold = true});
      svg.text({F::right + 34, row}, entry, {.size = 11});
    }
    ++drawn;
  }
  if (roofline.sweep && line.size() > 1)
    svg.polyline(line, colour_of(roofline.operations[0].kind), 1.0);
  // Letters lie over all circles; one that would lie over another is left out.
  constexpr double apart = 11.0;
  std::vector<Svg::Point> written;
  for (const Mark& mark : marks) {
    const bool covers = std::any_of(written.begin(), written.end(), [&](const Svg::Point& other) {
      return std::hypot(mark.at.first - other.first, mark.at.second - other.second) < apart;
    });
    if (covers) continue;
    written.push_back(mark.at);
    svg.text(mark.at, mark.letter,
             {.size = 11,
              .anchor = mark.inside ? Anchor::middle : Anchor::start,
              .colour = mark.inside ? "#fff" : "#222",
              .bold = mark.inside});
  }
  double at = F::top + 18.0;  // Above the slope nothing can be.
  for (const std::string& kind : kinds) {
    svg.circle({F::left + 20.0, at - 4.0}, 5.0, colour_of(kind));
    svg.text({F::left + 32.0, at}, words_of(kind), {.size = 11});
    at += 16.0;
  }
  return svg.document();
}

}  // namespace orrery
