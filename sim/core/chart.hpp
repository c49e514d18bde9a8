#pragma once

#include <optional>
#include <string>
#include <vector>

namespace orrery {

/// What stands around a chart.
struct ChartText {
  std::string title;
  std::string subtitle;  ///< "": none.
  std::string x, y;      ///< Names of the axes.
};

/// The values along an axis that a user chose: numbers in rising order or words as they come.
struct ChartAxis {
  std::vector<std::string> labels;
  std::vector<double> numbers;  ///< Of the labels; empty: they are words.
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

/// One value for each pair of places, coloured, and written where there is room: rows are y, bottom
/// up. Nothing is drawn where there is none.
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

}  // namespace orrery
