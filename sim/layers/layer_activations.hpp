#pragma once

#include "sim/layers/step_cost.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Whether `choice` computes every other product of a layer again.
bool alternates_products(const Scenario& scenario, const RecomputeChoice& choice);

/// Bytes that one layer keeps of one micro-batch from its forward to its backward pass, on one
/// rank.
///
/// Source   Korthikanti et al. (arXiv 2205.05198), section 4, term by term, so that it holds for
///          gated MLPs, grouped key/value heads and fused attention as well. For a GPT layer with
///          dropout it equals their sbh(10 + 24/t + 5as/(ht)), and with sequence parallelism
///          sbh/t (34 + 5as/h).
///          Of routed experts it keeps the rows that arrive (fc1's input), both sides of the
///          activation, and the results that come back, whose weighted sum needs them again.
///          A part that is computed again keeps its inputs alone; of norms, latent up-projections
///          and the routed activation these are kept anyway, and their outputs are not (Megatron
///          Core, tensor_parallel/random.py, CheckpointWithoutOutput).
Bytes layer_activations(const Scenario& scenario, const RecomputeChoice& recompute,
                        LayerKind kind = LayerKind::dense, double fullest = 1.0);

/// What the layers keep that the plan offloads: it lies in the host's memory.
Bytes activations_on_host(const Scenario& scenario);

/// Activations of the plan's offloaded layers travel to the host beside the forward pass, and back
/// beside the backward pass: each pass lasts at least as long as the copy. The last part of the
/// forward pass waits for what is left of it, and the first one of the backward pass, as layers
/// that stayed have their turn first.
///
/// Source   Megatron Bridge documentation, CPU offloading; Transformer Engine, cpu_offload.py,
///          which copies on a stream of its own.
void wait_for_host_copies(const Scenario& scenario, StageCost& cost);

/// How long the copies of one pass take, in either direction.
Seconds host_copies(const Scenario& scenario);

}  // namespace orrery
