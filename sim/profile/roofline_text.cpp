// The roofline as lines of a terminal: a grid of characters.
#include <algorithm>
#include <cmath>

#include "sim/core/number_text.hpp"
#include "sim/profile/roofline_axes.hpp"

namespace orrery {
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
  // From the top.
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

void draw_roof(Grid& grid, const DrawnRoof& roof, BytesPerSecond memory) {
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

std::string roofline_mark(std::size_t drawn) {
  static const std::string marks = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return drawn < marks.size() ? std::string(1, marks[drawn]) : "*";
}

std::string roofline_text(const RooflineChart& roofline) {
  const RooflineAxes axes{roofline};
  Grid grid{axes};
  std::vector<DrawnRoof> roofs = drawn_roofs(roofline);
  // Those in use last, so that nothing covers them.
  std::stable_partition(roofs.begin(), roofs.end(),
                        [](const DrawnRoof& roof) { return !roof.used; });
  for (const DrawnRoof& roof : roofs) draw_roof(grid, roof, roofline.roofs.memory);
  std::size_t drawn = 0;
  std::vector<std::pair<std::pair<int, int>, char>> marks;
  for (const OperationPrice& one : roofline.operations) {
    if (!is_drawn(one)) continue;
    const char mark = roofline_mark(drawn++)[0];
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
