#pragma once

#include <vector>

namespace orrery::calibration {

/// One reference product measured again and again between the other measurements: what it loses,
/// the clock has lost, to heat, to the power limit or to somebody else on the GPU.
class ReferenceTrack {
 public:
  struct Check {
    double at_s = 0.0;  ///< Since the campaign began.
    double median_us = 0.0;
  };
  /// Over 5 % slower than ever before counts as throttled: several times the 1 to 2 % by which an
  /// undisturbed GPU's medians differ from each other.
  static constexpr double throttled_from = 1.05;

  void add(double at_s, double median_us) { checks_.push_back({at_s, median_us}); }
  const std::vector<Check>& checks() const { return checks_; }

  /// How much slower than at its fastest the reference was around the measurements between the last
  /// two checks: the slower of the two. 1 where there are none.
  double latest_slowdown() const;

 private:
  std::vector<Check> checks_;
};

}  // namespace orrery::calibration
