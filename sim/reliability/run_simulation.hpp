#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/reliability/failure_draws.hpp"
#include "sim/reliability/fault_replay.hpp"
#include "sim/reliability/replicate_setup.hpp"

namespace orrery {

/// Simulates one run from its first step to its last checkpoint, with the failures of a source.
///
/// A failure stops the job at once. It is detected; a failed unit is replaced by a spare, or the
/// job waits for one; then everything starts, reads the newest surviving checkpoint, and goes on. A
/// failure in between restarts this sequence. An elastic job goes on with as many groups of
/// replicas as there are units for, and stops only while its communicators are rebuilt; where the
/// replicas hold all that was lost, it does not fall back.
///
/// If failures are of a fleet, `setup.fleet`, the job and its spares are some of its units, and
/// spares fail as well.
RunTotals run_replicate(const ReplicateSetup& setup, FailureSource&& failures);

/// A random figure: its mean, its 90 % interval and its median.
struct ChanceRange {
  double mean = 0.0, low = 0.0, high = 0.0, median = 0.0;

  /// A few values are so extreme that the mean lies outside of the interval.
  bool heavy_tailed() const { return mean < low || mean > high; }
  /// Within the interval: the mean, or the median where a heavy tail draws the mean out of it.
  double typical() const { return heavy_tailed() ? median : mean; }
};
/// Needs at least one value.
ChanceRange chance_range(std::vector<double> values);

/// Independent replicates. Replicate i meets the same failures as replicate i of any other setup
/// with the same distribution and seed.
std::vector<RunTotals> run_replicates(const ReplicateSetup& setup,
                                      const FailureDistribution& distribution, std::uint64_t seed,
                                      int replicates);
/// The same with the faults of a record.
std::vector<RunTotals> run_replicates(const ReplicateSetup& setup, const FaultRecord& record,
                                      std::uint64_t seed, int replicates);

/// Without a stated number, a run pays for as many spares as suffice in this share of its time.
inline constexpr double covered_share = 0.99;

/// Shares of the time of all runs in which 0, 1, ... units were away.
std::vector<double> shares_away(std::span<const RunTotals> runs);

/// The least number that the units away do not exceed for `share` of the time of all runs.
int units_away(std::span<const RunTotals> runs, double share);

}  // namespace orrery
