#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <variant>
#include <vector>

#include "sim/engine/event_queue.hpp"
#include "sim/reliability/failure_draws.hpp"
#include "sim/reliability/fault_replay.hpp"
#include "sim/reliability/replicate_setup.hpp"

namespace orrery {

/// Units that are ready to take a place in the job, and those in repair.
class SparePool {
 public:
  explicit SparePool(int spares) : ready_{spares} {}

  /// Calls must be in the order of time.
  void lose(Micros at, Micros repair);        ///< A unit of the job.
  void lose_spare(Micros at, Micros repair);  ///< A ready spare.
  void settle(Micros now);
  int ready() const { return ready_; }
  void take() { --ready_; }
  bool any_in_repair() const { return !returns_.empty(); }
  Micros next_return() const { return returns_.next().time; }

  /// Times during which 0, 1, ... units were in repair, until `end`, which may precede the last
  /// call.
  std::vector<Micros> with_away(Micros end) const;

 private:
  int ready_;
  EventQueue<Micros, std::monostate> returns_;
  std::vector<Micros> lost_, back_;  // All units ever lost: when they failed and returned.
};

/// Simulates one run from its first step to its last checkpoint, with the failures of a source.
///
/// A failure stops the job at once. It is detected; a failed unit is replaced by a spare, or the
/// job waits for one; then everything starts, reads the newest surviving checkpoint, and goes on. A
/// failure in between restarts this sequence. An elastic job goes on without the replicas whose
/// units are in repair, and stops only while its communicators are rebuilt; where the replicas hold
/// all that was lost, it does not fall back.
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

/// Shares of the time of all runs in which 0, 1, ... units were in repair.
std::vector<double> shares_away(std::span<const RunTotals> runs);

/// The least number that the units in repair do not exceed for `share` of the time of all runs.
int units_away(std::span<const RunTotals> runs, double share);

}  // namespace orrery
