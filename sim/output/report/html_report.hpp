#pragma once

#include <string>

#include "sim/engine/graph/timeline.hpp"
#include "sim/work/result/result.hpp"
#include "sim/work/training/training_step.hpp"

namespace orrery {

/// A result as one HTML file to send around: no script, nothing that is loaded from elsewhere. How
/// fast the step is, where its time goes, the step over time, memory by stage, links, and what the
/// answer rests on; every drawing but that of the step over time with its figures in a table. It
/// also holds the result object (result_json), in a script element of type application/json.
///
/// `more`: sections as HTML that stand before what the answer rests on.
std::string html_report(const Result& result, const TrainingStep& step, const Timeline& timeline,
                        const std::string& more = "");

}  // namespace orrery
