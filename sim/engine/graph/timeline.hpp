#pragma once

#include <optional>
#include <vector>

#include "sim/base/core/units.hpp"

namespace orrery {

struct Span {
  Seconds start;
  Seconds finish;
};

/// When each task of a graph ran, by task id, from the step's beginning. What engine and output
/// share: no SimGrid type in it.
struct Timeline {
  std::vector<Span> spans;
  Seconds makespan;
  /// When the step begins for the stage that takes longest, and ends for it, where stages do not
  /// wait for each other at its end (Software::optimizer_post_validation); else all of it.
  std::optional<Span> longest_stage = {};

  Span step() const { return longest_stage.value_or(Span{{}, makespan}); }
  Seconds step_time() const { return step().finish - step().start; }
};

}  // namespace orrery
