#pragma once

#include <string>

#include "sim/reliability/fault_trace.hpp"
#include "sim/reliability/reliability.hpp"

namespace orrery {

/// "meta-llama3: Llama 3 405B on ..., 466 events": what failures rest on.
std::string reliability_text(const Reliability& profile);

/// Every cause with how often it interrupts a job of so many GPUs and what follows, then what
/// holds of all of them.
std::string reliability_details(const Reliability& profile, int gpus);

/// profile_of() a record of faults as a file of "orrery.reliability/1", for people. Read again it
/// is the same profile, but for what `base` is left to say: detection, restarts, checkpoints.
std::string fault_profile_json(const FaultTrace& trace, const Reliability& base,
                               int gpus_per_server);

}  // namespace orrery
