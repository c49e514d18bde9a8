#include "sim/calibration/degradation.hpp"

#include <cstdio>

#include "sim/calibration/collective_name.hpp"

namespace orrery {

// A larger message never runs slower per byte on a healthy fabric; a seventh is beyond the noise of
// a repeated run.
std::string degradation(const Curve& curve) {
  constexpr double large_bytes = 64.0 * (1 << 20);
  constexpr double tolerated = 0.15;
  const double factor = bus_factor(curve.collective, curve.ranks).value_or(1.0);
  double best = 0.0, best_bytes = 0.0, worst_left = 1.0 - tolerated;
  std::string worst;
  for (const auto& [bytes, time_us] : curve.points) {
    if (bytes < large_bytes) continue;
    const double gb_s = factor * bytes / time_us / 1e3;
    if (gb_s > best) {
      best = gb_s;
      best_bytes = bytes;
    } else if (gb_s / best < worst_left) {
      worst_left = gb_s / best;
      char text[200];
      std::snprintf(text, sizeof text,
                    "bus bandwidth falls by %.0f %% from %.1f GB/s at %.0f bytes to %.1f GB/s at "
                    "%.0f bytes: the run looks degraded",
                    100.0 * (1.0 - worst_left), best, best_bytes, gb_s, bytes);
      worst = text;
    }
  }
  return worst;
}

}  // namespace orrery
