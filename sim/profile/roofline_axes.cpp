#include "sim/profile/roofline_axes.hpp"

#include <algorithm>
#include <cmath>

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
  for (const DrawnRoof& roof : drawn_roofs(roofline)) {
    if (roof.used) most_y = std::max(most_y, roof.tflops);
    // Beyond its ridge a roof shall be seen to be flat.
    if (roof.used) most_x = std::max(most_x, 3.0 * roof.tflops * 1e12 / memory);
  }
  for (const OperationPrice& one : roofline.operations) {
    if (!is_drawn(one)) continue;
    least_x = std::min(least_x, one.roofs.ops_per_byte());
    most_x = std::max(most_x, one.roofs.ops_per_byte());
    least_y = std::min(least_y, one.reached().si() / 1e12);
    most_y = std::max(most_y, one.reached().si() / 1e12);
  }
  constexpr double margin = 1.6;
  x_first = std::max(least_x / margin, 1e-3);
  x_last = margin * most_x;
  // What takes as good as for ever lies on the lower edge.
  y_first = std::max(least_y / margin, 1e-5 * most_y);
  y_last = margin * most_y;
}

std::vector<double> RooflineAxes::x_ticks() const { return powers(x_first, x_last); }
std::vector<double> RooflineAxes::y_ticks() const { return powers(y_first, y_last); }

std::vector<DrawnRoof> drawn_roofs(const RooflineChart& roofline) {
  std::vector<DrawnRoof> roofs;
  for (const MachineRoofs::Format& format : roofline.roofs.formats) {
    // fp16 and bf16, mxfp8 and fp8 are units of one rate; a format's own name is that of the plan.
    const auto uses = [&](const OperationPrice& one) {
      return is_drawn(one) && one.roofs.peak == format.peak;
    };
    roofs.push_back({format.name, format.peak.si() / 1e12,
                     std::any_of(roofline.operations.begin(), roofline.operations.end(), uses)});
  }
  return roofs;
}

double roof_at(double ops_per_byte, double tflops, BytesPerSecond memory) {
  return std::min(tflops, ops_per_byte * memory.si() / 1e12);
}

}  // namespace orrery
