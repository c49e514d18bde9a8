#pragma once

#include <string>

#include "sim/pipeline/explicit_order.hpp"

namespace orrery {

/// The time of one pass, or of two that run together.
struct PlacedPass {
  std::size_t slot = 0;  ///< Index of the first pass in the rank's order.
  int count = 1;
  Seconds start, end;
};

/// The passes of a schedule in time, with one length for each kind of pass. A pass starts when its
/// rank is free and its input is there: a forward pass needs that of the previous virtual stage, a
/// backward pass that of the next one, or on the last stage its own forward pass.
struct Replay {
  std::vector<std::vector<PlacedPass>> ranks;  ///< Each rank's passes until it waits for ever.
  Seconds end;
  /// All ranks run all their passes, without a circle of waits.
  bool complete = true;
};
Replay replay(const ExplicitOrder& order, const PassLengths& lengths, Seconds transfer);

/// The pass of another virtual stage that a pass needs, and its rank. Nothing if the input enters
/// the model, or for gradients of weights.
struct Need {
  int stage = 0;
  Slot slot;  ///< `inputs_only` is left unset in backward passes.
};
std::optional<Need> need_of(const ExplicitOrder& order, const Places& places, int stage,
                            const Slot& slot);

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
