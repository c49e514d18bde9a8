#pragma once

#include <string>

#include "sim/pipeline/schedule_replay.hpp"

namespace orrery {

/// A schedule and how long its passes take, in whole units, as `orrery schedule` draws it.
struct DrawnSchedule {
  std::string name;
  SpeltOrder order;
  PassLengths lengths;
  Replay played;  ///< With these lengths.
};

/// What passes take, in words: "forward 1, backward 2".
std::string lengths_text(const DrawnSchedule& drawn);

/// One line a rank, time from left to right, a dot for every unit in which it is idle; below, how
/// long each rank is idle and how much it holds.
std::string schedule_drawing(const DrawnSchedule& drawn);

/// The same as a drawing in SVG.
std::string schedule_chart(const DrawnSchedule& drawn);

}  // namespace orrery
