#include <algorithm>
#include <cmath>

#include "sim/calibration/calibration_text.hpp"
#include "sim/core/chart_frame.hpp"
#include "sim/core/number_text.hpp"

namespace orrery {
namespace {

using F = ChartFrame;

// 1, 2 and 5 times powers of ten around all rates, so that every row lies between two ticks.
std::vector<double> ticks_around(double least, double most) {
  std::vector<double> ticks;
  for (double power = std::pow(10.0, std::floor(std::log10(least))); power <= most; power *= 10.0)
    for (const double factor : {1.0, 2.0, 5.0}) ticks.push_back(factor * power);
  ticks.push_back(10.0 * std::pow(10.0, std::floor(std::log10(most))));
  while (ticks.size() > 2 && ticks[1] <= least) ticks.erase(ticks.begin());
  while (ticks.size() > 2 && ticks[ticks.size() - 2] >= most) ticks.pop_back();
  return ticks;
}

}  // namespace

std::string calibration_chart(const Calibration& calibration,
                              const std::vector<AssessedTable>& tables) {
  struct Dot {
    double predicted, achieved;  // TFLOP/s
  };
  double least = INFINITY, most = 0.0;
  std::vector<std::vector<Dot>> dots;
  for (const AssessedTable& table : tables) {
    dots.emplace_back();
    for (const AssessedRow& row : table.rows) {
      const Dot dot{row.flop / row.others.si() * 1e-12, row.flop / row.measured.si() * 1e-12};
      for (const double rate : {dot.predicted, dot.achieved}) {
        least = std::min(least, rate);
        most = std::max(most, rate);
      }
      dots.back().push_back(dot);
    }
  }
  if (dots.empty())
    fail_input({calibration.file, ""}, "holds no kernels, so that there is nothing to draw",
               "leave --svg out");
  const std::vector<double> ticks = ticks_around(least, most);
  const ChartScale across = ChartScale::logarithmic(ticks, F::left, F::right);
  const ChartScale up = ChartScale::logarithmic(ticks, F::bottom, F::top);
  Svg svg{F::width, F::height};
  draw_frame(svg,
             {"Achieved against predicted, " + calibration.gpu,
              "each row predicted from the others of its table; on the line they agree",
              "predicted TFLOP/s", "achieved TFLOP/s"},
             across, up, true);
  svg.line({across.pixel(ticks.front()), up.pixel(ticks.front())},
           {across.pixel(ticks.back()), up.pixel(ticks.back())}, "#888");
  for (std::size_t i = 0; i < dots.size(); ++i) {
    const AssessedTable& table = tables[i];
    for (std::size_t row = 0; row < dots[i].size(); ++row)
      svg.circle({across.pixel(dots[i][row].predicted), up.pixel(dots[i][row].achieved)}, 2.5,
                 series_colour(i), table.rows[row].shape);
    const double y = F::top + 20.0 * static_cast<double>(i);
    svg.circle({F::right + 20, y - 4}, 4.0, series_colour(i));
    svg.text({F::right + 32, y}, table.what + ", " + grouped(std::ssize(table.rows)) + " rows");
  }
  return svg.document();
}

}  // namespace orrery
