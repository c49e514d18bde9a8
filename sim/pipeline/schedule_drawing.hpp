#pragma once

#include <string>

#include "sim/pipeline/schedule_replay.hpp"

namespace orrery {

/// A schedule with the durations of its passes, in whole units, as `orrery schedule` plots it.
struct PlottedSchedule {
  std::string name;
  ExplicitOrder order;
  PassLengths lengths;
  Replay played;  ///< Replayed with these lengths.
};

/// The durations of passes in words: "forward 1, backward 2".
std::string lengths_text(const PlottedSchedule& plot);

/// One line a rank, time from left to right, a dot for every idle unit; below, the idle time and
/// the peak memory of each rank.
std::string schedule_drawing(const PlottedSchedule& plot);

/// The same as an SVG chart.
std::string schedule_chart(const PlottedSchedule& plot);

}  // namespace orrery
