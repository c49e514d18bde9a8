#pragma once

#include "sim/explorer/asked_estimate.hpp"
#include "sim/explorer/explored_sweep.hpp"

namespace orrery {

/// A grid of plans, a line each as it is estimated:
///
///     {"command": "orrery sweep run ...", "points", "axes": [{"key", "values": ["1", "2"]}]},
///     {"at": [0, 1] (places in the axes' values), "step_time_s", "tokens_per_s_per_gpu", "mfu",
///      "memory_bytes", "capacity_bytes", "state", with tokens "training_time_s" and "rent_usd":
///      {"low", "high"} or null}, or
///     {"at", "why_not"}, and last, where a plan runs,
///     {"best": [0, 1], "ties": [[1, 1], ...]}
///
/// The best has the most tokens/s/GPU; ties have it too, as far as predictions can tell (9 in 10).
/// Errors before the first line: of the asker.
void sweep_reply(const ExploredSweep& asked, WarmInputs& inputs, const SendPart& send);

}  // namespace orrery
