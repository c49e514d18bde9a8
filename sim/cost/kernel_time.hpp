#pragma once

#include "sim/core/units.hpp"
#include "sim/cost/tag.hpp"

namespace orrery {

/// How long one GPU kernel takes, and how we know.
struct KernelTime {
  Seconds time;
  Tag tag = Tag::default_value;
};

/// A kernel without any measurement: assumed shares of the peaks, and a launch.
struct Roofline {
  double compute_efficiency = 0.7;
  double memory_efficiency = 0.85;
  Seconds launch = microseconds(5);
};

}  // namespace orrery
