#pragma once

#include <string>

#include "sim/core/units.hpp"

namespace orrery {

/// What a kernel, or a chain of them, waits for most.
enum class Bound { memory, compute, latency, host, network };
const std::string& name(Bound bound);

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
