#pragma once

#include "sim/reliability/fault_replay.hpp"
#include "sim/reliability/fault_trace.hpp"
#include "sim/reliability/run_policy.hpp"
#include "sim/reliability/walk_setup.hpp"

namespace orrery {

Micros whole_micros(Seconds time);

/// What a profile says, as a walk takes it.
FailureLaw law_of(const Reliability& profile, int gpus);
/// Of a fleet's batches of 1, 2, ... failures, those that strike a job on `part` of it: each
/// failure strikes it by that chance.
std::vector<double> batches_of_part(const std::vector<double>& batches, double part);
FaultRecord record_of(const FaultTrace& trace);
std::vector<WalkCause> causes_of(const Reliability& profile,
                                 const std::vector<CheckpointRule>& tiers);

}  // namespace orrery
