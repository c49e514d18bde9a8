#include "sim/profile/roofline.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/chart.hpp"
#include "sim/core/number_text.hpp"

namespace orrery {
namespace {

std::vector<double> powers(double first, double last) {
  std::vector<double> all;
  for (int power = static_cast<int>(std::ceil(std::log10(first) - 1e-9));
       power <= static_cast<int>(std::floor(std::log10(last) + 1e-9)); ++power)
    all.push_back(std::pow(10.0, power));
  return all;
}

}  // namespace

RooflineAxes::RooflineAxes(const RooflineChart& roofline) {
  const double memory = roofline.roofs.memory.si();
  double least_x = 1.0, most_x = 1.0, least_y = 1e9, most_y = 0.0;
  for (const PlottedRoof& roof : plotted_roofs(roofline)) {
    if (roof.used) most_y = std::max(most_y, roof.tflops);
    // Beyond its ridge a roof shall be seen to be flat.
    if (roof.used) most_x = std::max(most_x, 3.0 * roof.tflops * 1e12 / memory);
  }
  for (const OperationPrice& one : roofline.operations) {
    if (!is_plotted(one)) continue;
    least_x = std::min(least_x, one.roofs.ops_per_byte());
    most_x = std::max(most_x, one.roofs.ops_per_byte());
    least_y = std::min(least_y, one.reached().si() / 1e12);
    most_y = std::max(most_y, one.reached().si() / 1e12);
  }
  constexpr double margin = 1.6;
  x_first = std::max(least_x / margin, 1e-3);
  x_last = margin * most_x;
  // Operations that take almost for ever lie on the lower edge.
  y_first = std::max(least_y / margin, 1e-5 * most_y);
  y_last = margin * most_y;
}

std::vector<double> RooflineAxes::x_ticks() const { return powers(x_first, x_last); }
std::vector<double> RooflineAxes::y_ticks() const { return powers(y_first, y_last); }

std::vector<PlottedRoof> plotted_roofs(const RooflineChart& roofline) {
  std::vector<PlottedRoof> roofs;
  for (const MachineRoofs::Format& format : roofline.roofs.formats) {
    // fp16 and bf16, mxfp8 and fp8 are units of one rate; a format's own name is that of the plan.
    const auto uses = [&](const OperationPrice& one) {
      return is_plotted(one) && one.roofs.peak == format.peak;
    };
    roofs.push_back({format.name, format.peak.si() / 1e12,
                     std::any_of(roofline.operations.begin(), roofline.operations.end(), uses)});
  }
  return roofs;
}

double roof_at(double ops_per_byte, double tflops, BytesPerSecond memory) {
  return std::min(tflops, ops_per_byte * memory.si() / 1e12);
}

// The roofline as a drawing.
namespace {

using F = ChartFrame;

const std::string& colour_of(const std::string& kind) {
  static const std::pair<std::string, std::string> colours[] = {{"gemm", "#0072b2"},
                                                                {"experts", "#004c78"},
                                                                {"attention", "#d55e00"},
                                                                {"scan", "#cc79a7"},
                                                                {"vector", "#009e73"}};
  for (const auto& [name, colour] : colours)
    if (name == kind) return colour;
  return colours[0].second;
}

const char* words_of(const std::string& kind) {
  if (kind == "gemm") return "matrix products";
  if (kind == "experts") return "products of experts";
  if (kind == "attention") return "attention";
  if (kind == "scan") return "scans of states";
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
  for (const PlottedRoof& roof : plotted_roofs(roofline)) {
    const double ridge = roof.tflops / memory;
    if (roof.tflops > axes.y_last || ridge > axes.x_last) continue;
    highest = std::max(highest, roof.tflops);
    svg.line({x.pixel(ridge), y.pixel(roof.tflops)}, {x.pixel(axes.x_last), y.pixel(roof.tflops)},
             roof.used ? "#222" : "#bbb", roof.used ? 2.0 : 1.0);
    const double at = y.pixel(roof.tflops) - 5.0;
    if (at - written < 14.0) continue;  // Names must not overlap.
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
  std::size_t index = 0;
  constexpr std::size_t most_listed = 22;
  for (const OperationPrice& one : roofline.operations) {
    if (!is_plotted(one)) continue;
    const Svg::Point at{x.pixel(one.roofs.ops_per_byte()),
                        y.pixel(std::max(axes.y_first, one.reached().si() / 1e12))};
    const double share = one.all_time() / whole;
    const double radius = roofline.sweep ? 4.0 : std::clamp(40.0 * std::sqrt(share), 3.0, 22.0);
    svg.circle(at, radius, colour_of(one.kind), described(one, whole), 0.75);
    if (std::find(kinds.begin(), kinds.end(), one.kind) == kinds.end()) kinds.push_back(one.kind);
    line.push_back(at);
    if (index < most_listed) {
      const std::string mark = roofline_mark(index);
      const bool inside = radius >= 9.0;
      marks.push_back({{at.first + (inside ? 0.0 : radius + 2.0), at.second + 4.0}, mark, inside});
      std::string entry = one.name;
      if (roofline.sweep)
        entry = one.sizes;
      else if (one.count > 1.0 || !one.when.empty())
        entry +=
            (one.when.empty() ? "" : " (" + one.when + ")") + std::string{", "} + percent(share);
      const double row = F::top + 8.0 + 16.0 * static_cast<double>(index);
      svg.text({F::right + 18, row}, mark, {.size = 11, .bold = true});
      svg.text({F::right + 34, row}, entry, {.size = 11});
    }
    ++index;
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
  double at = F::top + 18.0;  // No operation can lie above the slope.
  for (const std::string& kind : kinds) {
    svg.circle({F::left + 20.0, at - 4.0}, 5.0, colour_of(kind));
    svg.text({F::left + 32.0, at}, words_of(kind), {.size = 11});
    at += 16.0;
  }
  return svg.document();
}

// The roofline as lines of a terminal: a grid of characters.
namespace {

constexpr int columns = 66, rows = 21;
constexpr int label_width = 8;

class Grid {
 public:
  explicit Grid(const RooflineAxes& axes) : axes_{axes}, lines_(rows, std::string(columns, ' ')) {}

  int column(double ops_per_byte) const {
    const double share =
        std::log(ops_per_byte / axes_.x_first) / std::log(axes_.x_last / axes_.x_first);
    return std::clamp(static_cast<int>(std::lround(share * (columns - 1))), 0, columns - 1);
  }
  // Row 0 is at the top.
  int row(double tflops) const {
    const double share = std::log(tflops / axes_.y_first) / std::log(axes_.y_last / axes_.y_first);
    return std::clamp(static_cast<int>(std::lround((1.0 - share) * (rows - 1))), 0, rows - 1);
  }
  double ops_at(int column) const {
    return axes_.x_first *
           std::pow(axes_.x_last / axes_.x_first, static_cast<double>(column) / (columns - 1));
  }
  double lowest() const { return axes_.y_first; }
  double highest() const { return axes_.y_last; }
  char& at(int row, int column) {
    return lines_[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
  }
  const std::string& line(int row) const { return lines_[static_cast<std::size_t>(row)]; }

 private:
  const RooflineAxes& axes_;
  std::vector<std::string> lines_;
};

void draw_roof(Grid& grid, const PlottedRoof& roof, BytesPerSecond memory) {
  if (roof.tflops > grid.highest()) return;
  for (int column = 0; column < columns; ++column) {
    const double x = grid.ops_at(column);
    const double y = roof_at(x, roof.tflops, memory);
    if (y < grid.lowest()) continue;
    const bool flat = y == roof.tflops;
    grid.at(grid.row(y), column) = flat ? (roof.used ? '=' : '-') : '/';
  }
  // Its name stands in the line: at the right end, or where that may be in the way, at its ridge.
  const std::string name = " " + roof.name + " " + fixed(roof.tflops, 0);
  const int row = grid.row(roof.tflops);
  const int end = columns - static_cast<int>(name.size());
  const int ridge = grid.column(roof.tflops * 1e12 / memory.si()) + 2;
  const int begin = roof.used ? end : std::min(ridge, end);
  for (std::size_t i = 0; i < name.size(); ++i) grid.at(row, begin + static_cast<int>(i)) = name[i];
}

std::string plain(double value) { return fixed(value, value >= 1.0 ? 0 : value >= 0.1 ? 1 : 3); }

std::string axis_below(const Grid& grid, const RooflineAxes& axes) {
  std::string line(static_cast<std::size_t>(label_width + 1 + columns + 6), ' ');
  for (const double tick : axes.x_ticks()) {
    const std::string label = plain(tick);
    const auto at = static_cast<std::size_t>(
        std::max(0, label_width + 1 + grid.column(tick) - static_cast<int>(label.size()) / 2));
    for (std::size_t i = 0; i < label.size() && at + i < line.size(); ++i) line[at + i] = label[i];
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

std::string roofline_mark(std::size_t index) {
  static const std::string marks = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return index < marks.size() ? std::string(1, marks[index]) : "*";
}

std::string roofline_text(const RooflineChart& roofline) {
  const RooflineAxes axes{roofline};
  Grid grid{axes};
  std::vector<PlottedRoof> roofs = plotted_roofs(roofline);
  // Those in use last, so that nothing covers them.
  std::stable_partition(roofs.begin(), roofs.end(),
                        [](const PlottedRoof& roof) { return !roof.used; });
  for (const PlottedRoof& roof : roofs) draw_roof(grid, roof, roofline.roofs.memory);
  std::size_t index = 0;
  std::vector<std::pair<std::pair<int, int>, char>> marks;
  for (const OperationPrice& one : roofline.operations) {
    if (!is_plotted(one)) continue;
    const char mark = roofline_mark(index++)[0];
    marks.push_back(
        {{grid.row(one.reached().si() / 1e12), grid.column(one.roofs.ops_per_byte())}, mark});
  }
  for (auto mark = marks.rbegin(); mark != marks.rend(); ++mark)
    grid.at(mark->first.first, mark->first.second) = mark->second;

  std::string text = roofline.title + "\n";
  if (!roofline.subtitle.empty()) text += roofline.subtitle + "\n";
  text += "\n TFLOP/s\n";
  std::vector<std::string> labels(rows);
  for (const double tick : axes.y_ticks())
    labels[static_cast<std::size_t>(grid.row(tick))] = plain(tick);
  for (int row = 0; row < rows; ++row) {
    const std::string& label = labels[static_cast<std::size_t>(row)];
    std::string line = std::string(label_width - label.size(), ' ') + label + "|" + grid.line(row);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  text += std::string(label_width, ' ') + "+" + std::string(columns, '-') + "\n";
  text += axis_below(grid, axes) + "\n";
  text += std::string(label_width + 1, ' ') + "operations a byte; the slope is memory's " +
          fixed(roofline.roofs.memory.si() / 1e9, 0) + " GB/s\n";
  return text;
}

}  // namespace orrery
