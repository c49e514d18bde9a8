#pragma once

#include <string>
#include <vector>

namespace orrery {

/// Bars from left to right, each of parts of several kinds, under each other.
struct StackedBars {
  struct Kind {
    std::string name;
    std::string colour;
  };
  struct Row {
    std::string label;
    std::vector<double> parts;  ///< By kind.
    std::string total;          ///< What is written behind the bar.
  };

  std::vector<Kind> kinds;
  std::vector<Row> rows;
  double full = 1.0;       ///< The value that takes the whole width.
  double limit = 0.0;      ///< Where a line is drawn; 0: none.
  std::string limit_name;  ///< What is written at it.

  /// As SVG. `shown(value)`: a part in words, under the pointer.
  std::string svg(std::string (*shown)(double)) const;
};

}  // namespace orrery
