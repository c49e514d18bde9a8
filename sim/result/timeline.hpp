#pragma once

#include <vector>

#include "sim/core/units.hpp"

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
};

}  // namespace orrery
