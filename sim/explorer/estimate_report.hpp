#pragma once

#include <string>

#include "sim/explorer/report_page.hpp"
#include "sim/training/estimate.hpp"

namespace orrery {

/// An estimate as one HTML file to send around, which loads nothing from elsewhere
/// (report_page.hpp): the speed and breakdown of the step, the step over time down to its kernels,
/// memory over time and by stage, the cluster with its links, the roofline of its operations, the
/// load of its experts, and the basis of the answer. Figures stand in tables that need no script;
/// the drawings are the explorer's. It also holds the result object (result_json) and as much of
/// the timeline as fits. `context`: that of the estimate.
std::string estimate_report(const Estimate& answer, EstimateContext& context,
                            const ReportAbout& about);

}  // namespace orrery
