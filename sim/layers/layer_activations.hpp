#pragma once

#include "sim/layers/step_cost.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Every other product of a layer is recomputed under `choice`.
bool alternates_products(const Scenario& scenario, const RecomputeChoice& choice);

/// Bytes that one layer keeps of one micro-batch from its forward to its backward pass, on one
/// rank.
///
/// Source   Korthikanti et al. (arXiv 2205.05198), section 4, term by term, so that it holds for
///          gated MLPs, grouped key/value heads and fused attention as well. For a GPT layer with
///          dropout it equals their sbh(10 + 24/t + 5as/(ht)), and with sequence parallelism
///          sbh/t (34 + 5as/h).
///          Routed experts keep the rows that arrive (fc1's input), both sides of the activation,
///          and the results that come back, whose weighted sum needs them again.
///          A recomputed part keeps its inputs only; those of norms, latent up-projections and the
///          routed activation are kept anyway, and their outputs are not (Megatron Core,
///          tensor_parallel/random.py, CheckpointWithoutOutput).
Bytes layer_activations(const Scenario& scenario, const RecomputeChoice& recompute,
                        LayerKind kind = LayerKind::dense, double fullest = 1.0);

/// The part of a layer's activations, in bytes, that the plan's offload_modules move to the host's
/// memory. `fullest` as in layer_activations().
Bytes offloaded_activations(const Scenario& scenario, LayerKind kind, double fullest = 1.0);

/// Activations of a micro-batch in a virtual stage that the plan offloads to the host's memory.
Bytes activations_on_host(const Scenario& scenario, int virtual_stage);

/// Activations of the plan's offloaded layers and modules are copied to the host during the forward
/// pass, and back during the backward pass: each pass lasts at least as long as the copy. The last
/// part of the forward pass waits for the rest of it, and so does the first part of the backward
/// pass, as layers that stayed run first.
///
/// Source   Megatron Bridge documentation, CPU offloading; Transformer Engine, cpu_offload.py, and
///          Megatron Core, pipeline_parallel/fine_grained_activation_offload.py, which copy on a
///          separate stream.
void wait_for_host_copies(const Scenario& scenario, int virtual_stage, StageCost& cost);

/// Time of the copies of one pass through a virtual stage, in either direction.
Seconds host_copies(const Scenario& scenario, int virtual_stage);

}  // namespace orrery
