#pragma once

#include <string>

#include "sim/explorer/report_page.hpp"
#include "sim/reliability/training_run.hpp"

namespace orrery {

/// A whole run as one HTML file (report_page.hpp): one run from day to day, the spread of days,
/// lost time by cause, the effect of improvements, and all figures. `one`: the run that is plotted,
/// with its log. It needs no script.
std::string run_report(const TrainingRun& run, const RunTotals& one, const ReportAbout& about);

}  // namespace orrery
