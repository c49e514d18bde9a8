#pragma once

#include "sim/input/reliability/fault_trace.hpp"
#include "sim/input/reliability/run_policy.hpp"
#include "sim/work/walk/fault_replay.hpp"
#include "sim/work/walk/walk_setup.hpp"

namespace orrery {

Micros whole_micros(Seconds time);

/// What a profile says, as a walk takes it.
FailureLaw law_of(const Reliability& profile, int gpus);
FaultRecord record_of(const FaultTrace& trace);
std::vector<WalkCause> causes_of(const Reliability& profile,
                                 const std::vector<CheckpointRule>& tiers);

}  // namespace orrery
