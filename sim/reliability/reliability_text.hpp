#pragma once

#include <string>

#include "sim/reliability/fault_trace.hpp"
#include "sim/reliability/reliability.hpp"
#include "sim/reliability/replicate_setup.hpp"
#include "sim/reliability/training_run.hpp"

namespace orrery {

/// The profile in a line: "meta-llama3: Llama 3 405B on ..., 466 events".
std::string reliability_text(const Reliability& profile);

/// Every cause with its rate for a job of so many GPUs and its consequences, then the figures
/// common to all.
std::string reliability_details(const Reliability& profile, int gpus);

/// profile_of() a record of faults as a file of "orrery.reliability/1", for people. Read again it
/// is the same profile, without the parts of `base`: detection, restarts, checkpoints.
std::string fault_profile_json(const FaultTrace& trace, const Reliability& base,
                               int gpus_per_server);

/// The printed answer of a run that failures interrupt (docs/guides/whole-runs.md explains each
/// figure).
std::string training_run_text(const TrainingRun& run);

/// One line with a run's length and rent, as training_run_text() has them.
std::string sampled_run_line(const TrainingRun& run);

/// The rent that a change saves: "$1.2 to 3.1 million", or with "more" where it costs that; "" for
/// unknown prices.
std::string saved_rent_text(const Improvement& improvement);

/// The printed name, such as "redone work".
std::string words(RunTime time);

/// "orrery.run/1".
std::string training_run_json(const TrainingRun& run);

/// A line for each replicate: its days, interruptions and where its time went, in days.
std::string training_run_csv(const std::vector<RunTotals>& runs);

}  // namespace orrery
