#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/analysis/run/checkpoint_size.hpp"
#include "sim/input/machine/economics.hpp"
#include "sim/input/reliability/fault_trace.hpp"
#include "sim/work/result/result.hpp"
#include "sim/work/walk/run_replicates.hpp"

namespace orrery {

/// What is asked of a run that failures interrupt.
struct RunQuestion {
  double tokens = 0.0;
  Reliability reliability;
  /// Replayed instead of failures that are drawn; `reliability` is then its profile_of().
  std::optional<FaultTrace> faults;
  RunPolicy policy;
  double slower = 0.0;  ///< One GPU takes so much longer: what does it cost? 0: not asked.
  int replicates = 1000;
  std::uint64_t seed = 1;
};

/// A tier as the run uses it.
struct RunTier {
  CheckpointTier tier = CheckpointTier::store;
  std::int64_t steps = 0;  ///< From one checkpoint to the next.
  CheckpointTimes times;
  Seconds slowed;  ///< By which a step is longer that begins while a write is on its way.
  /// Intervals that would cost the least if this tier stood alone, by the exact formula and by
  /// Young's; 0 where no failure would read it.
  Seconds best, young;
};

/// A run before chance plays.
struct PreparedRun {
  Scenario scenario;
  Seconds step;  ///< Of the whole and undisturbed cluster.
  CheckpointSize size;
  std::vector<RunTier> tiers;
  int gpus_of_unit = 0;
  WalkSetup setup;
  FailureLaw law;
  std::optional<FaultRecord> record;  ///< Replayed instead of the law.

  double steps() const;  ///< In all.
  Seconds without_interruption() const { return step * steps(); }
};

/// Errors: infeasible where the job cannot run elastically, or where more is lost than done;
/// bad_input for policies that contradict themselves or the plan.
PreparedRun prepare_run(const Scenario& scenario, Seconds step, const RunQuestion& question);

/// The mean of ETTR by the formula of expected_run.hpp, for one tier as if it stood alone, with a
/// spare always at hand, and a rate that is `factor` times the profile's.
double expected_ettr(const PreparedRun& run, const RunTier& tier, double factor = 1.0);

/// Replicates of a prepared run. Errors (infeasible): some of them hardly got on.
std::vector<RunTally> finished_runs(const PreparedRun& run, const RunQuestion& question);

/// Units in repair, in runs that never wait for one.
struct SpareNeed {
  int units = 0;  ///< That do for 99 % of the time.
  /// Spares that are there and paid for: those that the user chose, else as many as that.
  int kept = 0;
  double short_of = 0.0;  ///< Share of the time in which more are in repair than are kept.
};

/// What became of all replicates.
struct RunFigures {
  ChanceRange days, ettr, goodput, interruptions;
  std::array<double, run_times> shares{};  ///< Of the time of all runs; they add up to 1.
  std::vector<double> by_cause;            ///< Interruptions of a run, on average.
  std::vector<double> days_of;             ///< Of each replicate.
};
RunFigures figures_of(const std::vector<RunTally>& runs);

/// What one improvement would bring, replicate by replicate under the same failures.
struct Improvement {
  std::string what;
  ChanceRange days;   ///< Saved.
  double ettr = 0.0;  ///< Gained, on average.
  Range usd;          ///< Saved rent, on average.
};

/// One slow GPU that does not fail.
struct SlowGpu {
  int stage = 0;        ///< Of the pipeline, that it sits in.
  double longer = 0.0;  ///< The step, as a share of it.
  /// To replace it the job saves, stops and starts: that pays if at least so much of the run is
  /// left. Infinite where the GPU costs nothing.
  Seconds pays_after;
};

struct RunBill {
  double gpu_hours = 0.0;  ///< With those of spares.
  Range rent_usd, energy_kwh, energy_usd;
};

/// The answer of `orrery run`.
struct TrainingRun {
  RunQuestion question;
  PreparedRun prepared;
  std::vector<RunTally> runs;
  RunFigures figures;
  SpareNeed spares;
  std::optional<double> expected_ettr;  ///< By the formula, where it speaks of this policy.
  std::vector<Improvement> worth;
  std::vector<SlowGpu> slow;  ///< By stage, where that was asked.
  RunBill bill;
};
TrainingRun training_run(const Scenario& scenario, Seconds step, const RunQuestion& question,
                         const Economics& economics);

}  // namespace orrery
