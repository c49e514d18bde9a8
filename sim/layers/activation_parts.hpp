#pragma once

#include <array>
#include <vector>

#include "sim/layers/memory.hpp"

namespace orrery {

/// Of what StageMemory::activations is the sum: micro-batches in flight, and what passes hold
/// beside them while they run.
struct ActivationParts {
  /// What a micro-batch keeps of a chunk, of each copy of the model: where chunks are not alike, of
  /// the one that keeps the most.
  std::array<Bytes, 2> micro_batch;
  Bytes recomputed;  ///< One layer whole, while a backward pass computes it again.
  /// A layer's of a forward pass that runs beside a backward pass, before that gives one back; 0
  /// where none do.
  Bytes beside;
};

/// One a pipeline stage. Errors: as memory_of().
std::vector<ActivationParts> activation_parts(const Scenario& scenario, const RoutedLoads& loads);

}  // namespace orrery
