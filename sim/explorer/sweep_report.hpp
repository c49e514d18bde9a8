#pragma once

#include <optional>
#include <string>

#include "sim/explorer/report_page.hpp"
#include "sim/sweep/point_evaluator.hpp"
#include "sim/sweep/sweep_folder.hpp"
#include "sim/sweep/sweep_text.hpp"

namespace orrery {

/// Rows of which a report keeps the best: some 150 bytes each.
inline constexpr std::size_t most_rows_in_a_report = 12'000;

/// A sweep as one HTML file (report_page.hpp): a curve or a map over its keys, plans by step and
/// memory and, with bills, by days and rent, and what `orrery sweep run` prints. It also holds the
/// rows that `rows` keeps (sweep_rows_json), what the sweep was told, and `inputs`: those that its
/// rows come from, or none where they are not there any more. They are left out where the file
/// would be too large with them.
std::string sweep_report(const SweepFolder& folder, const BestRows& rows,
                         const std::optional<SweepInputs>& inputs, const ReportAbout& about);

}  // namespace orrery
