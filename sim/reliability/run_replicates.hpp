#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/reliability/fault_replay.hpp"
#include "sim/reliability/walk.hpp"

namespace orrery {

/// What chance makes of a figure: its mean, and where nine in ten lie.
struct ChanceRange {
  double mean = 0.0, low = 0.0, high = 0.0;
};
/// Of at least one value.
ChanceRange chance_range(std::vector<double> values);

/// Runs that differ by chance alone. The failures of replicate i are those of replicate i under
/// any other setup with the same law and seed.
std::vector<RunTally> run_replicates(const WalkSetup& setup, const FailureLaw& law,
                                     std::uint64_t seed, int replicates);
/// Through the faults of a record.
std::vector<RunTally> run_replicates(const WalkSetup& setup, const FaultRecord& record,
                                     std::uint64_t seed, int replicates);

/// Of the time of all runs, the shares in which 0, 1, ... units were in repair.
std::vector<double> shares_away(std::span<const RunTally> runs);

/// The least number of units that `share` of the time of all runs is not exceeded by those in
/// repair.
int units_away(std::span<const RunTally> runs, double share);

}  // namespace orrery
