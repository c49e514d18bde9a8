#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace orrery::calibration {

/// The driver's readings of the GPU at one time; missing ones are absent.
struct GpuState {
  std::optional<double> clock_hz;  ///< Clock of the multiprocessors.
  std::optional<double> power_w;   ///< Momentary if the driver has that, else over its last second.
  std::optional<double> temperature_c;
  /// NVML's bits of what holds the clock down (nvmlClocksEventReasons).
  std::optional<std::uint64_t> held_by;
};

/// "power cap", "power cap, hardware thermal"; "nothing" for 0 and for an idle GPU's bit alone.
/// Bits that NVML has not named keep their number.
std::string held_by_text(std::uint64_t bits);

}  // namespace orrery::calibration
