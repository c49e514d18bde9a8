#pragma once

#include <array>
#include <vector>

#include "sim/layers/routed_loads.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Peak memory on one GPU of a pipeline stage, in bytes.
struct StageMemory {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;
  Bytes other;  ///< Logits, transfer buffers, and the reserve for context, NCCL and libraries.

  Bytes peak() const { return weights + gradients + optimizer + activations + other; }
};

/// A plan that fills more of a GPU may not fit, despite the prediction: of 27 peaks published for
/// Megatron-LM three were more than 5 % above the prediction (docs/explanation/accuracy.md), and
/// nodes have been seen to fail at 96 % (pytorch/torchtitan, issue 1789).
constexpr double safe_share_of_memory = 0.95;
/// Predicted peaks have been up to a tenth above published ones (docs/reference/output.md): a plan
/// that exceeds the memory by less may run, so an estimate of it gives its time with a warning.
/// Searches keep to the memory.
inline constexpr double tolerated_share_of_memory = 1.1;

struct MemoryReport {
  std::vector<StageMemory> stages;  ///< One a pipeline stage.
  Bytes capacity;
  /// Optimizer state and activations of a node whose GPUs all have the stage with the most.
  Bytes host = {};
  Bytes host_activations = {};  ///< The part of it that is activations.
  Bytes host_capacity = {};     ///< 0: unknown.

  int fullest_stage() const;
  Bytes peak() const;
  bool fits() const { return peak() <= capacity && host_fits(); }
  bool host_fits() const { return host_capacity == Bytes{} || host <= host_capacity; }
};

/// Weights take 2 bytes a parameter, gradients as the software keeps them, the optimizer 12 (fp32
/// weight and two moments; with ZeRO over the ranks that hold the same parameters), or as the
/// plan's formats require (parameter_formats.hpp), activations of as many micro-batches as the
/// schedule has in flight (with full recomputation their inputs, and one whole layer). Experts keep
/// the rows that arrive at the fullest rank: `loads` are this scenario's, and are computed if not
/// given. Errors (infeasible, bad_input): a routing that does not suit the plan.
MemoryReport memory_of(const Scenario& scenario, const RoutedLoads& loads);
MemoryReport memory_of(const Scenario& scenario);

/// The same with equal rows on all ranks. No routing takes less, and none is computed.
MemoryReport least_memory_of(const Scenario& scenario);

/// The parts of StageMemory::activations: micro-batches in flight, and memory of running passes.
struct ActivationParts {
  /// Activations of a micro-batch per chunk, for each copy of the model; the largest of its chunks.
  std::array<Bytes, 2> micro_batch;
  /// One layer whole, while a backward pass computes it again, and what comes back from the host
  /// for a layer and the next.
  Bytes recomputed;
  /// A layer's activations of a forward pass with a concurrent backward pass, before that frees
  /// one's; else 0.
  Bytes concurrent;
};

/// Names what MemoryReport::host holds: "the optimizer", "activations", "the optimizer and
/// activations".
std::string text_of_host(const Plan& plan);

/// One entry a pipeline stage. Errors as in memory_of().
std::vector<ActivationParts> activation_parts(const Scenario& scenario, const RoutedLoads& loads);

}  // namespace orrery
