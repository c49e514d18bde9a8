#pragma once

#include <array>
#include <vector>

#include "sim/layers/routed_loads.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Bytes on one GPU of a pipeline stage when it holds the most.
struct StageMemory {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;
  Bytes other;  ///< Logits, transfer buffers, and the reserve for context, NCCL and libraries.

  Bytes peak() const { return weights + gradients + optimizer + activations + other; }
};

/// A plan that fills more of a GPU may not fit, whatever is predicted: of 27 peaks published for
/// Megatron-LM three were more than 5 % above the prediction (docs/explanation/accuracy.md), and
/// nodes have been seen to fail at 96 % (pytorch/torchtitan, issue 1789).
constexpr double safe_share_of_memory = 0.95;
/// Predicted peaks have been up to a tenth above what was published (docs/reference/output.md): a
/// plan that exceeds the memory by less may run, so that whoever asks for this very plan gets its
/// time with a warning. Who chooses among plans keeps to the memory.
inline constexpr double tolerated_share_of_memory = 1.1;

struct MemoryReport {
  std::vector<StageMemory> stages;  ///< One a pipeline stage.
  Bytes capacity;

  int fullest_stage() const;
  Bytes peak() const;
  bool fits() const { return peak() <= capacity; }
};

/// Weights 2 bytes a parameter, gradients as the software keeps them, optimizer 12 (fp32 weight and
/// two moments; with ZeRO over the ranks that hold the same parameters), or what the plan's formats
/// make of them (parameter_formats.hpp), activations of as many micro-batches as the schedule has
/// in flight (with full recomputation their inputs, and one layer whole).
/// Experts keep the rows that arrive at the fullest rank: `loads` are where this scenario's tokens
/// go, or are found out. Errors (infeasible, bad_input): a routing that does not suit the plan.
MemoryReport memory_of(const Scenario& scenario, const RoutedLoads& loads);
MemoryReport memory_of(const Scenario& scenario);

/// The same if all ranks got equal rows: no routing makes it less, and it asks for none.
MemoryReport least_memory_of(const Scenario& scenario);

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
