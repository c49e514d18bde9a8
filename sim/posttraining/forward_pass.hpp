#pragma once

#include "sim/plan/scenario.hpp"
#include "sim/training/context.hpp"

namespace orrery {

/// Time in which all micro-batches of a plan pass the model forward, without gradients: the passes
/// of a GPipe step until the last of them has ended, with its gathers of shards and its transfers.
/// Weights that the plan keeps whole are whole. Requires one chunk a stage (vpp 1).
Seconds forward_time(const Scenario& scenario, EstimateContext& context);

}  // namespace orrery
