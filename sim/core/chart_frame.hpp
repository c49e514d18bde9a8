#pragma once

#include "sim/core/chart.hpp"
#include "sim/core/chart_scale.hpp"
#include "sim/core/svg.hpp"

namespace orrery {

/// Where a chart is drawn:
///
///     title                                |
///     subtitle                             |
///     y |                         | legend |
///       +------------------------          |
///                  x                       |
struct ChartFrame {
  static constexpr double width = 860.0, height = 520.0;
  static constexpr double left = 92.0, right = 660.0, top = 64.0, bottom = 452.0;
};

/// Colours of series that people who see few colours can tell apart (Okabe and Ito, "Color
/// Universal Design", 2008), without the yellow that white swallows.
const std::string& series_colour(std::size_t series);

/// Titles, axes, ticks and grid lines. Ticks that would touch each other lose their label.
void draw_frame(Svg& svg, const ChartText& text, const ChartScale& x, const ChartScale& y,
                bool grid_lines);

/// A scale for `axis` between two pixels: by its numbers, or place after place.
struct AxisScale {
  ChartScale scale;
  bool by_number = false;
  double pixel(const ChartAxis& axis, std::size_t place) const {
    return scale.pixel(by_number ? axis.numbers[place] : static_cast<double>(place));
  }
};
AxisScale scale_of(const ChartAxis& axis, double begin, double end);

}  // namespace orrery
