#pragma once

#include <string>
#include <vector>

#include "sim/profile/operation_price.hpp"

namespace orrery {

/// Operations below the roofs of a GPU: over operations a byte (x) the operations a second that
/// each reaches (y), both logarithmic (Williams, Waterman and Patterson, "Roofline", CACM 52(4),
/// 2009). Operations without arithmetic or without traffic to memory have no place there.
struct RooflineChart {
  std::string title;
  std::string subtitle;  ///< "": none.
  MachineRoofs roofs;
  std::vector<OperationPrice> operations;  ///< Those first whose names matter most.
  bool sweep = false;                      ///< One operation at rising sizes: a line joins them.
};

/// The mark of the i-th plotted operation: a, b, ..., z, A, ..., Z, then *.
std::string roofline_mark(std::size_t index);

/// The chart as lines of a terminal. A cell that several share has the mark of the first.
std::string roofline_text(const RooflineChart& roofline);
/// The chart as an SVG document. Circles of a step are as large as their share of time.
std::string roofline_svg(const RooflineChart& roofline);

/// The extent of a roofline: around all operations, the ridges above them and the roofs.
struct RooflineAxes {
  explicit RooflineAxes(const RooflineChart& roofline);

  double x_first = 1.0, x_last = 1.0;  ///< Operations a byte.
  double y_first = 1.0, y_last = 1.0;  ///< TFLOP/s.
  /// Powers of ten between.
  std::vector<double> x_ticks() const;
  std::vector<double> y_ticks() const;
};

/// A plotted roof of one of the GPU's formats.
struct PlottedRoof {
  std::string name;
  double tflops = 0.0;
  bool used = false;
};
std::vector<PlottedRoof> plotted_roofs(const RooflineChart& roofline);

/// TFLOP/s below a roof and memory's slope at so many operations a byte.
double roof_at(double ops_per_byte, double tflops, BytesPerSecond memory);

}  // namespace orrery
