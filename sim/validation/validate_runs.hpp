#pragma once

#include "sim/validation/validate.hpp"

namespace orrery {

/// Predicts what was published of whole runs: "ettr" as the mean of 1,000 drawn runs, "mttf_h",
/// "interruptions", "restart_s", "checkpoint_bytes", "write_s", "load_s"; "slow_step_ratio", of the
/// stage where a slow GPU costs the most; "throughput_ratio", of a smaller batch to the whole one;
/// and of servers in repair "away_mean", "away_p50", "away_p90", "away_p99".
void compare_runs(const JsonValue& json, ValidationReport& report);

}  // namespace orrery
