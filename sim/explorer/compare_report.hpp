#pragma once

#include <string>
#include <vector>

#include "sim/explorer/report_page.hpp"
#include "sim/search/compare_text.hpp"
#include "sim/search/compared_runs_text.hpp"

namespace orrery {

/// Plans side by side as one HTML file (report_page.hpp): what their steps wait for as bars, all by
/// step and memory with ranges and ties, and what `orrery compare` prints. It also holds the
/// comparison (compare_json). `runs`: of the same plans; empty: nobody asked. `inputs`: of each
/// plan what its result says that it was made of, as JSON; "": nothing.
std::string compare_report(const std::vector<PricedPlan>& plans,
                           const std::vector<ComparedRun>& runs,
                           const std::vector<std::string>& inputs, const ReportAbout& about);

}  // namespace orrery
