#pragma once

#include "sim/explorer/asked_estimate.hpp"
#include "sim/explorer/explored_search.hpp"

namespace orrery {

/// Searches, and says line by line how far it is:
///
///     {"command": "orrery search ...", "max_memory"}   first
///     {"progress": {"parts", "parts_done", "legal", "fits", "simulated", "best", "bound",
///       "plans": [{"number", "gpus", "gbs", "flags", "step_time_s", "tokens_per_s_per_gpu",
///       "memory" (a share), "state"}], "leading": [number]}}   plans: simulated since the last
///     {"search": orrery.search/1, "states": [state of each of its plans]}   last, or
///     {"error": "..."}   where no plan runs
///
/// The list is that of the command. Errors before the first line: of the asker.
void search_reply(const ExploredSearch& asked, WarmInputs& inputs, const SendPart& send);

}  // namespace orrery
