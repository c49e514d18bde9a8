#pragma once

#include <vector>

#include "sim/engine/simulation.hpp"
#include "sim/layers/memory.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

/// What a rank keeps of a micro-batch for its backward pass.
struct HeldActivations {
  int microbatch = 0;
  int chunk = 0;
  Span taken;  ///< The forward pass.
  Span given;  ///< The last pass that needs them: the gradients of weights, where they are apart.
  Bytes bytes;
};

/// A corner of a curve that goes straight from corner to corner; of two at one time it jumps.
struct MemoryMoment {
  Ticks time;
  Bytes kept;     ///< Of micro-batches in flight.
  Bytes working;  ///< What the passes under way hold beside: ActivationParts::recomputed, beside.

  Bytes sum() const { return kept + working; }
};

/// Activations of one simulated rank over a step. Weights, gradients, optimizer state and buffers
/// stay as StageMemory has them.
struct ActivationsOverTime {
  int role = 0;
  std::vector<HeldActivations> held;  ///< By their forward passes.
  std::vector<MemoryMoment> curve;    ///< From the step's beginning to its end, both 0.

  /// The first corner that is as high as any.
  const MemoryMoment& peak() const;
};

/// When which activations are there, as the passes of the step ran. A forward pass takes what its
/// micro-batch keeps evenly while it runs, layer by layer, and the last backward pass gives it back
/// likewise; two passes that run together take and give while either runs. Chunks that are not
/// alike count as the fullest, as in MemoryReport, so that the peak is that of StageMemory wherever
/// the schedule's held() is what its order holds and not a limit to it (zb-1p and zb-2p), and where
/// both copies of the model keep as much. `parts`: by stage.
std::vector<ActivationsOverTime> activations_over_time(const TrainingStep& step,
                                                       const Timeline& timeline, const Plan& plan,
                                                       const std::vector<ActivationParts>& parts,
                                                       const std::vector<int>& roles);

}  // namespace orrery
