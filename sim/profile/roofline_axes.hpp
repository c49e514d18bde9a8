#pragma once

#include <vector>

#include "sim/profile/roofline.hpp"

namespace orrery {

/// Where a roofline lies: around all operations, the ridges above them and the roofs.
struct RooflineAxes {
  explicit RooflineAxes(const RooflineChart& roofline);

  double x_first = 1.0, x_last = 1.0;  ///< Operations a byte.
  double y_first = 1.0, y_last = 1.0;  ///< TFLOP/s.
  /// Powers of ten between.
  std::vector<double> x_ticks() const;
  std::vector<double> y_ticks() const;
};

/// Formats that an operation of the roofline computes in, and of the others those whose roofs are
/// not the same: all roofs that are drawn.
struct DrawnRoof {
  std::string name;
  double tflops = 0.0;
  bool used = false;
};
std::vector<DrawnRoof> drawn_roofs(const RooflineChart& roofline);

/// TFLOP/s below a roof and memory's slope at so many operations a byte.
double roof_at(double ops_per_byte, double tflops, BytesPerSecond memory);

}  // namespace orrery
