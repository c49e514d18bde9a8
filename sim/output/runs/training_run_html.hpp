#pragma once

#include <string>

#include "sim/analysis/run/training_run.hpp"

namespace orrery {

/// The answer as a page that loads nothing: how one run went from day to day, how days spread, what
/// was lost to what, what improvements would bring, and all figures. `one`: the run that is drawn,
/// with its log. Light or dark as the reader likes it, on phones and on paper.
std::string training_run_html(const TrainingRun& run, const RunTally& one);

}  // namespace orrery
