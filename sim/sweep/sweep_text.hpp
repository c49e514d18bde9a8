#pragma once

#include <string>

#include "sim/core/document.hpp"
#include "sim/sweep/best_rows.hpp"

namespace orrery {

/// How many points there are, and the best of them: at most `shown` lines.
Document sweep_document(const Sweep& sweep, const BestRows& rows, std::size_t shown);

/// The rows that `rows` keeps, for drawings (docs/guides/explorer.md):
///
///     {"schema": "orrery.sweep_rows/1", "points", "ok", "infeasible", "failed",
///      "axes": [{"key": "tp", "values": ["1", "2"]}]   (those that vary)
///      "rows": [{"at": [0, 1] (places in the axes' values), "memory_bytes", "capacity_bytes",
///                and unless memory alone was asked for "step_time_s", "tokens_per_s_per_gpu",
///                "mfu", and with tokens "training_time_s", "rent_usd": {"low", "high"}}]}
std::string sweep_rows_json(const Sweep& sweep, const BestRows& rows);

}  // namespace orrery
