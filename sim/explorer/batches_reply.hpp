#pragma once

#include "sim/explorer/asked_estimate.hpp"

namespace orrery {

/// A state with other global batches, the legal ones of its knob from a sixteenth to the
/// sixteenfold of its own, a line each as it is estimated:
///
///     {"command": "orrery sweep run ... --sweep gbs=..."}   first
///     {"gbs", "step_time_s", "tokens_per_s_per_gpu", "memory_bytes", "capacity_bytes"}, or
///     {"gbs", "why_not"}
///
/// Errors before the first line: of the asker.
void batches_reply(const ExploredState& state, WarmInputs& inputs, const SendPart& send);

}  // namespace orrery
