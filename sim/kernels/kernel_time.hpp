#pragma once

#include <string>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// The basis of a predicted time.
enum class Tag {
  measured,       ///< This very shape was measured on this kind of GPU.
  interpolated,   ///< From measurements of other shapes, or of a proxy for this GPU.
  default_value,  ///< From a formula with assumed efficiencies, or far outside all measurements.
};
template <>
inline const std::vector<std::string> enum_words<Tag>{"measured", "interpolated", "default"};

/// Time of one GPU kernel, and its basis.
struct KernelTime {
  Seconds time;
  Tag tag = Tag::default_value;
};

/// A kernel of a GPU without any measurement: assumed shares of the peaks, and a launch.
struct Roofline {
  /// Assumed: the best matrix products measured on A100 to GB200 reach 0.73 to 0.87 of the peak
  /// (github.com/stas00/ml-engineering, compute/accelerator/README.md), and training about 0.87 of
  /// a benchmark (`sustained` of calibration/data/kernels/h100-sxm.json).
  double compute_efficiency = 0.7;
  /// Assumed: the lower end of the 0.85 to 0.93 that plain copies reach (kernel_facts.json).
  double memory_efficiency = 0.85;
  /// Assumed: about twice the 2.2 us gap that fits the tables, whose kernels run in a CUDA graph.
  Seconds launch = microseconds(5);
};

/// The bottleneck of a kernel, or of a sequence of them.
enum class Bound { memory, compute, latency, host, network };
template <>
inline const std::vector<std::string> enum_words<Bound>{"memory", "compute", "latency", "host",
                                                        "network"};

/// Work of a kernel, and the peak rates of its GPU.
struct KernelRoofs {
  Flop flop;
  Bytes bytes;               ///< Traffic between the GPU and its memory.
  FlopPerSecond peak;        ///< Peak of the units that it computes with; 0: it uses none.
  BytesPerSecond bandwidth;  ///< Memory bandwidth.

  /// Arithmetic intensity, flop / bytes or "ops:byte"; 0 without traffic.
  double ops_per_byte() const;
  /// Ridge point, peak / bandwidth: kernels of less intensity are bound by memory, others by
  /// compute (Williams, Waterman and Patterson, "Roofline", CACM 52(4), 2009).
  double ridge() const;
  Seconds compute_time() const;  ///< The least time of its operations; 0 without units.
  Seconds memory_time() const;   ///< The least time of its traffic.
  Seconds least_time() const;    ///< The longer of both.
};

/// The higher ceiling of a kernel that takes `time`. Latency if neither is half of it, and it is so
/// short (10 us, twice Roofline::launch) that a launch and the pipeline of the first tile are the
/// rest. A longer kernel below half of its ceiling is slow, but still bound by that ceiling.
Bound bound_of(const KernelRoofs& roofs, Seconds time);

}  // namespace orrery
