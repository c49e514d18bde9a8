#pragma once

#include "sim/core/units.hpp"
#include "sim/kernels/tag.hpp"

namespace orrery {

/// How long one GPU kernel takes, and how we know.
struct KernelTime {
  Seconds time;
  Tag tag = Tag::default_value;
};

/// A kernel of a GPU without any measurement: assumed shares of the peaks, and a launch.
struct Roofline {
  /// Assumed: the best matrix products measured on A100 to GB200 reach 0.73 to 0.87 of the peak
  /// (github.com/stas00/ml-engineering, compute/accelerator/README.md), and training about 0.87 of
  /// what a benchmark does (`sustained` of calibration/data/kernels/h100-sxm.json).
  double compute_efficiency = 0.7;
  /// Assumed: the lower end of the 0.85 to 0.93 that plain copies reach (kernel_facts.json).
  double memory_efficiency = 0.85;
  /// Assumed: about twice the 2.2 us gap that fits the tables, whose kernels run in a CUDA graph.
  Seconds launch = microseconds(5);
};

}  // namespace orrery
