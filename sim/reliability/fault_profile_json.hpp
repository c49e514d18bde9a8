#pragma once

#include <string>

#include "sim/reliability/fault_trace.hpp"

namespace orrery {

/// profile_of() a record of faults as a file of "orrery.reliability/1", for people. Read again it
/// is the same profile, but for what `base` is left to say: detection, restarts, checkpoints.
std::string fault_profile_json(const FaultTrace& trace, const Reliability& base,
                               int gpus_per_server);

}  // namespace orrery
