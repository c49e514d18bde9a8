#pragma once

#include "sim/reliability/training_run.hpp"

namespace orrery {

/// What each improvement alone would bring that is not there yet, under the same failures; the most
/// first.
std::vector<Improvement> run_worth(const TrainingRun& answer, const Economics& economics);

}  // namespace orrery
