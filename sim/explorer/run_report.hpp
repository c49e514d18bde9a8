#pragma once

#include <string>

#include "sim/explorer/report_page.hpp"
#include "sim/reliability/training_run.hpp"

namespace orrery {

/// A whole run as one HTML file (report_page.hpp): how one run went from day to day, how days
/// spread, what was lost to what, what improvements would bring, and all figures. `one`: the run
/// that is drawn, with its log. All of it is drawn without a script.
std::string run_report(const TrainingRun& run, const RunTally& one, const ReportAbout& about);

}  // namespace orrery
