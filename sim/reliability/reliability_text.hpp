#pragma once

#include <string>

#include "sim/reliability/fault_trace.hpp"
#include "sim/reliability/reliability.hpp"

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

}  // namespace orrery
