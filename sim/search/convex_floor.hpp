#pragma once

#include <vector>

#include "sim/serving/step_times.hpp"

namespace orrery {

/// What a function of whole numbers cannot fall below, as straight lines under it.
class ConvexFloor {
 public:
  /// Points between which the function is linear, by rising arguments; at least one.
  explicit ConvexFloor(const std::vector<TimePoint>& points);

  /// The least that `calls` or more values of the function add up to, whose arguments add up to
  /// `amount` or more: of each line a + b x with a, b >= 0 under all points it is
  /// a calls + b amount.
  Seconds sum(double calls, double amount) const;

 private:
  struct Line {
    Seconds start, slope;
  };
  std::vector<Line> lines_;
};

}  // namespace orrery
