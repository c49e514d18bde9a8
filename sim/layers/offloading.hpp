#pragma once

#include "sim/layers/step_cost.hpp"

namespace orrery {

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
