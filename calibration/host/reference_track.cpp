#include "calibration/host/reference_track.hpp"

#include <algorithm>

namespace orrery::calibration {

double ReferenceTrack::latest_slowdown() const {
  if (checks_.empty()) return 1.0;
  double fastest = checks_.front().median_us;
  for (const Check& check : checks_) fastest = std::min(fastest, check.median_us);
  double slowest = checks_.back().median_us;
  if (checks_.size() > 1) slowest = std::max(slowest, checks_[checks_.size() - 2].median_us);
  return slowest / fastest;
}

}  // namespace orrery::calibration
