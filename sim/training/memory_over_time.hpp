#pragma once

#include <vector>

#include "sim/engine/simulation.hpp"
#include "sim/layers/memory.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

/// Activations that a rank keeps of a micro-batch for its backward pass.
struct HeldActivations {
  int microbatch = 0;
  int chunk = 0;
  Span taken;  ///< The forward pass.
  Span given;  ///< The last pass that needs them: that of weight gradients, if separate.
  Bytes bytes;
};

/// A point of a piecewise linear curve, which jumps between two points at one time.
struct MemoryMoment {
  Ticks time;
  Bytes kept;     ///< Activations of micro-batches in flight.
  Bytes working;  ///< Temporary memory of running passes (ActivationParts).

  Bytes sum() const { return kept + working; }
};

/// Activations of one simulated rank over a step. Weights, gradients, optimizer state and buffers
/// stay as StageMemory has them.
struct ActivationsOverTime {
  int rep = 0;
  std::vector<HeldActivations> held;  ///< Ordered by their forward passes.
  std::vector<MemoryMoment> curve;    ///< Starts and ends with the step, at 0.

  /// The first of the highest points.
  const MemoryMoment& peak() const;
};

/// Activation memory over the simulated step. A forward pass allocates its micro-batch's
/// activations evenly over its time, layer by layer, and the last backward pass frees them
/// likewise; two passes that run together allocate and free while either runs. Unequal chunks count
/// as the fullest, as in MemoryReport. The peak therefore equals StageMemory's, unless the
/// schedule's held() is only a limit (zb-1p and zb-2p) or the model's two copies keep different
/// amounts. `parts` is indexed by stage; `reps` selects representatives.
std::vector<ActivationsOverTime> activations_over_time(const TrainingStep& step,
                                                       const Timeline& timeline, const Plan& plan,
                                                       const std::vector<ActivationParts>& parts,
                                                       const std::vector<int>& reps);

}  // namespace orrery
