#pragma once

#include <vector>

namespace orrery::calibration {

/// One reference product measured again and again between the other measurements: its slowdown is
/// the clock's, by heat, the power limit or another program on the GPU.
class ReferenceTrack {
 public:
  struct Check {
    double at_s = 0.0;  ///< Since the campaign began.
    double median_us = 0.0;
  };
  /// A slowdown of over 5 % counts as throttled: several times the 1 to 2 % by which an undisturbed
  /// GPU's medians differ from each other.
  static constexpr double throttled_from = 1.05;

  void add(double at_s, double median_us) { checks_.push_back({at_s, median_us}); }
  const std::vector<Check>& checks() const { return checks_; }

  /// The reference's slowdown, relative to its fastest, around the measurements between the last
  /// two checks: the slower of the two. 1 if there are none.
  double latest_slowdown() const;

 private:
  std::vector<Check> checks_;
};

}  // namespace orrery::calibration
