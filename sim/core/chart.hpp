#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/core/svg.hpp"

namespace orrery {

/// A place on an axis and what is written there.
struct Tick {
  double at = 0.0;
  std::string label;
};

/// Maps values to pixels along one axis of a chart.
class ChartScale {
 public:
  /// Equal steps of value from `first` to `last`, with round ticks inside; a little is added at
  /// both ends. Labels are those of the figure called `name`, in one unit for all.
  static ChartScale linear(const std::string& name, double first, double last, double begin,
                           double end);
  /// Whole places 0, 1, ... for `labels`, each in the middle of its share.
  static ChartScale places(std::vector<std::string> labels, double begin, double end);
  /// Equal steps of the logarithm, with a tick at each of `values`.
  static ChartScale logarithmic(const std::vector<double>& values, double begin, double end);

  /// The same between two values, with ticks at those of `values` that lie between.
  static ChartScale logarithmic(double first, double last, const std::vector<double>& values,
                                double begin, double end);

  double pixel(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  double scaled(double value) const;

  bool logarithmic_ = false;
  double first_ = 0.0, last_ = 1.0;  ///< Scaled values.
  double begin_ = 0.0, end_ = 1.0;   ///< Pixels.
  std::vector<Tick> ticks_;
};

/// "65.5 GB", "8,192", "0.548", "12.9 s" for a figure by the unit in its name: _bytes, _s.
std::string figure_label(const std::string& name, double value);

/// Texts around a chart.
struct ChartText {
  std::string title;
  std::string subtitle;  ///< "": none.
  std::string x, y;      ///< Names of the axes.
};

/// The values along an axis that a user chose: numbers in rising order or words as they come.
struct ChartAxis {
  std::vector<std::string> labels;
  std::vector<double> numbers;  ///< The labels' values; empty: they are words.
};

/// One line: for each place of the axis a value, or none.
struct ChartSeries {
  std::string name;
  std::vector<std::optional<double>> values;
};

/// Values over an axis, a line for each series, as an SVG document. The axis is logarithmic where
/// its numbers span a factor of 8 or more.
std::string line_chart(const ChartText& text, const ChartAxis& x,
                       const std::vector<ChartSeries>& series);

/// One coloured value for each pair of places, and its number if it fits: rows are y, bottom up. A
/// pair without a value stays empty.
std::string heat_map(const ChartText& text, const ChartAxis& x, const ChartAxis& y,
                     const std::vector<std::vector<std::optional<double>>>& rows,
                     const std::string& figure);

/// A point of a Pareto chart, and what it is called.
struct ChartPoint {
  double x = 0.0, y = 0.0;
  std::string name;
};

/// All points, and a line through those that no other beats in both figures: `frontier`, by rising
/// x.
std::string pareto_chart(const ChartText& text, const std::vector<ChartPoint>& points,
                         const std::vector<ChartPoint>& frontier);

/// Layout of a chart:
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
