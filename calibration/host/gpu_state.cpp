#include "calibration/host/gpu_state.hpp"

#include <iterator>

namespace orrery::calibration {

// Names of nvml.h's nvmlClocksEventReason*. Bit 0 says that the GPU idles, which holds nothing.
std::string held_by_text(std::uint64_t bits) {
  static constexpr const char* names[] = {nullptr,
                                          "application clocks",
                                          "power cap",
                                          "hardware slowdown",
                                          "sync boost",
                                          "thermal",
                                          "hardware thermal",
                                          "hardware power brake",
                                          "display clocks"};
  std::string text;
  for (int bit = 1; bit < 64; ++bit) {
    if (!(bits >> bit & 1)) continue;
    const bool named = bit < static_cast<int>(std::size(names));
    text += (text.empty() ? "" : ", ") + (named ? names[bit] : "bit " + std::to_string(bit));
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace orrery::calibration
