#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "sim/explorer/explored_search.hpp"
#include "sim/explorer/views.hpp"
#include "sim/explorer/warm_inputs.hpp"

namespace orrery {

/// Sends a part of a reply. `status`: of HTTP, the same in all parts of a reply.
using SendPart = std::function<void(int status, std::string_view bytes)>;
inline constexpr int http_ok = 200;

/// Refuses a state without model, system or GPUs, or with economics but no tokens (bad_input).
void require_inputs(const ExploredState& state);

/// The estimate of `orrery estimate` with the same words. Errors: the same.
Estimate estimate_of(const ExploredState& state, WarmInputs& inputs);

/// A state with other global batches, the legal ones from a sixteenth to sixteen times its own, a
/// line each as it is estimated:
///
///     {"command": "orrery sweep run ... --sweep gbs=..."}   first
///     {"gbs", "step_time_s", "tokens_per_s_per_gpu", "memory_bytes", "capacity_bytes"}, or
///     {"gbs", "why_not"}
///
/// Errors of the request come before the first line.
void batches_reply(const ExploredState& state, WarmInputs& inputs, const SendPart& send);

/// Searches, and reports its progress line by line:
///
///     {"command": "orrery search ...", "max_memory"}   first
///     {"progress": {"parts", "parts_done", "legal", "fits", "simulated", "best", "bound",
///       "plans": [{"number", "gpus", "gbs", "flags", "step_time_s", "tokens_per_s_per_gpu",
///       "memory" (a share), "state"}], "leading": [number]}}   plans: simulated since the last
///     {"search": orrery.search/1, "states": [state of each of its plans]}   last, or
///     {"error": "..."}   where no plan runs
///
/// The list is that of the command. Errors of the request come before the first line.
void search_reply(const ExploredSearch& query, WarmInputs& inputs, const SendPart& send);

/// A grid of plans, a line each as it is estimated:
///
///     {"command": "orrery sweep run ...", "points", "axes": [{"key", "values": ["1", "2"]}]},
///     {"at": [0, 1] (places in the axes' values), "step_time_s", "tokens_per_s_per_gpu", "mfu",
///      "memory_bytes", "capacity_bytes", "state", with tokens "training_time_s" and "rent_usd":
///      {"low", "high"} or null}, or
///     {"at", "why_not"}, and last, where a plan runs,
///     {"best": [0, 1], "ties": [[1, 1], ...]}
///
/// The best has the most tokens/s/GPU; ties do not differ from it significantly (90 % interval).
/// Errors of the request come before the first line.
void sweep_reply(const ExploredSweep& query, WarmInputs& inputs, const SendPart& send);

}  // namespace orrery
