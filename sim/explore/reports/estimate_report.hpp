#pragma once

#include <string>

#include "sim/analysis/estimate/estimate.hpp"

namespace orrery {

/// What a report says beside the answer.
struct ReportAbout {
  std::string command;  ///< That wrote it, as a shell takes it; "": none.
};

/// An estimate as one HTML file to send around, which loads nothing from elsewhere
/// (report_page.hpp): how fast the step is, where its time goes, the step over time down to its
/// kernels, memory by stage, links, the roofline of its operations, and what the answer rests on.
/// Figures stand in tables that need no script; the drawings are the explorer's. It also holds the
/// result object (result_json) and the timeline. `context`: that it was estimated in.
std::string estimate_report(const Estimate& answer, EstimateContext& context,
                            const ReportAbout& about);

}  // namespace orrery
