#pragma once

#include <string>

#include "sim/reliability/training_run.hpp"
#include "sim/reliability/walk_setup.hpp"

namespace orrery {

/// What a person reads of a run that failures interrupt (docs/guides/whole-runs.md says what each
/// figure is).
std::string training_run_text(const TrainingRun& run);

/// One line: how long the run takes with such failures by the closed form, and its rent.
std::string expected_run_text(const PreparedRun& run, const RunQuestion& question,
                              const Economics& economics);

/// What people call the ways to lose time: "redone work".
std::string words(RunTime time);

/// "orrery.run/1".
std::string training_run_json(const TrainingRun& run);

/// A line for each replicate: its days, interruptions and where its time went, in days.
std::string training_run_csv(const std::vector<RunTally>& runs);

}  // namespace orrery
