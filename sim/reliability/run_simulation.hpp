#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <variant>
#include <vector>

#include "sim/engine/event_queue.hpp"
#include "sim/reliability/failure_draws.hpp"
#include "sim/reliability/fault_replay.hpp"
#include "sim/reliability/walk_setup.hpp"

namespace orrery {

/// Units that are ready to take a place, and those in repair.
class UnitPool {
 public:
  explicit UnitPool(int spares) : ready_{spares} {}

  /// Calls come in the order of time.
  void lose(Micros at, Micros repair);        ///< One that had a place.
  void lose_spare(Micros at, Micros repair);  ///< One that was ready.
  void settle(Micros now);
  int ready() const { return ready_; }
  void take() { --ready_; }
  bool any_in_repair() const { return !returns_.empty(); }
  Micros next_return() const { return returns_.next().time; }

  /// For how long 0, 1, ... units were in repair, until `end`, which may be before the last call.
  std::vector<Micros> with_away(Micros end) const;

 private:
  int ready_;
  EventQueue<Micros, std::monostate> returns_;
  std::vector<Micros> lost_, back_;  // Of all units that were ever lost.
};

/// One run from its first step to its last checkpoint, through the failures of a source.
///
/// A failure stops the job at once. It is detected; where a unit failed a spare takes its place,
/// or the job waits for one; then everything starts, reads the newest checkpoint that the failure
/// left, and goes on. A failure in between makes all this begin anew. An elastic job goes on
/// without the replicas whose units are in repair, and stands only while its communicators are
/// built anew; where the replicas hold all that was lost, it does not fall back.
///
/// Where failures are of a fleet, `setup.fleet`, the job and its spares are some of its units, and
/// spares fail as well.
RunTally walk(const WalkSetup& setup, FailureSource&& failures);

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
