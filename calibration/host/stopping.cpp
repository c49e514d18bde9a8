#include "calibration/host/stopping.hpp"

#include <cassert>
#include <cmath>

namespace orrery::calibration {

const std::vector<std::string>& stopped_names() {
  static const std::vector<std::string> names{"", "noise", "time", "samples"};
  return names;
}

void StoppingRule::add(double time_us) {
  assert(std::isfinite(time_us) && time_us > 0.0);
  times_us_.push_back(time_us);
}

Stopped StoppingRule::look(double spent_s) {
  if (samples() >= limits_.least_samples && times_us_.size() > seen_) {
    const TimingSummary now = summary();
    const bool quiet = now.noise <= limits_.noise && std::abs(now.drift) <= 2.0 * limits_.noise;
    quiet_looks_ = quiet ? quiet_looks_ + 1 : 0;
    seen_ = times_us_.size();
    if (quiet_looks_ >= 2) return Stopped::noise;
  }
  if (samples() >= limits_.most_samples) return Stopped::samples;
  if (samples() > 0 && spent_s >= limits_.time_s) return Stopped::time;
  return Stopped::not_yet;
}

}  // namespace orrery::calibration
