#pragma once

#include <string>

#include "sim/core/document.hpp"
#include "sim/sweep/best_rows.hpp"

namespace orrery {

/// The number of points, and the best of them: at most `shown` lines.
Document sweep_document(const Sweep& sweep, const BestRows& rows, std::size_t shown);

/// The rows that `rows` keeps, for charts (docs/guides/explorer.md):
std::string sweep_rows_json(const Sweep& sweep, const BestRows& rows);

}  // namespace orrery
