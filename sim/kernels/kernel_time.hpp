#pragma once

#include <string>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// What a predicted time rests on.
enum class Tag {
  measured,       ///< This very shape was measured on this kind of GPU.
  interpolated,   ///< From measurements of other shapes, or of a GPU that stands in for this one.
  default_value,  ///< From a formula with assumed efficiencies, or far outside what was measured.
};
template <>
inline const std::vector<std::string> enum_words<Tag>{"measured", "interpolated", "default"};

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

/// What a kernel, or a chain of them, waits for most.
enum class Bound { memory, compute, latency, host, network };
template <>
inline const std::vector<std::string> enum_words<Bound>{"memory", "compute", "latency", "host",
                                                        "network"};

/// What a kernel must do, and the most that its GPU does of it a second.
struct KernelRoofs {
  Flop flop;
  Bytes bytes;               ///< Between the GPU and its memory.
  FlopPerSecond peak;        ///< Of the units that it computes with; 0: it uses none.
  BytesPerSecond bandwidth;  ///< Of the memory.

  /// flop / bytes, the kernel's intensity, or "ops:byte". 0 where nothing is moved.
  double ops_per_byte() const;
  /// peak / bandwidth: kernels of less intensity are bound by memory, others by compute (Williams,
  /// Waterman and Patterson, "Roofline", CACM 52(4), 2009).
  double ridge() const;
  Seconds compute_time() const;  ///< The least that its operations take; 0 without units.
  Seconds memory_time() const;   ///< The least that its traffic takes.
  Seconds least_time() const;    ///< The longer of both.
};

/// The higher roof of a kernel that takes `time`. Latency where neither is half of it, and it is so
/// short (10 us, twice Roofline::launch) that a launch and the first tile's way are the rest. A
/// longer kernel that keeps below half of its roof is slow, but the roof is still what bounds it.
Bound bound_of(const KernelRoofs& roofs, Seconds time);

}  // namespace orrery
