#pragma once

#include <string>
#include <vector>

namespace orrery {

/// A place on an axis and what is written there.
struct Tick {
  double at = 0.0;
  std::string label;
};

/// Maps values to pixels along one axis of a chart.
class ChartScale {
 public:
  /// From `first` to `last` in equal steps of value, with round ticks inside; a little is added at
  /// both ends. Labels are those of the figure called `name`, in one unit for all.
  static ChartScale linear(const std::string& name, double first, double last, double begin,
                           double end);
  /// Whole places 0, 1, ... for `labels`, each in the middle of its share.
  static ChartScale places(std::vector<std::string> labels, double begin, double end);
  /// In equal steps of the logarithm, with a tick at each of `values`.
  static ChartScale logarithmic(const std::vector<double>& values, double begin, double end);

  /// The same between two values, with ticks at those of `values` that lie between.
  static ChartScale logarithmic(double first, double last, const std::vector<double>& values,
                                double begin, double end);

  double pixel(double value) const;
  const std::vector<Tick>& ticks() const { return ticks_; }

 private:
  double scaled(double value) const;

  bool logarithmic_ = false;
  double first_ = 0.0, last_ = 1.0;  ///< Of the scaled values.
  double begin_ = 0.0, end_ = 1.0;   ///< Pixels.
  std::vector<Tick> ticks_;
};

/// "65.5 GB", "8,192", "0.548", "12.9 s" for a figure by the unit in its name: _bytes, _s.
std::string figure_label(const std::string& name, double value);

}  // namespace orrery
