#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/economics.hpp"
#include "sim/reliability/expected_run.hpp"
#include "sim/reliability/fault_trace.hpp"
#include "sim/reliability/run_simulation.hpp"
#include "sim/reliability/run_states.hpp"
#include "sim/training/result.hpp"

namespace orrery {

/// Steps with one slow GPU over steps with none, as Slowness has them.
struct SlowStates {
  std::vector<double> knots;
  std::vector<std::vector<double>> ratios;
};

/// What is asked of a run that failures interrupt.
struct RunQuestion {
  double tokens = 0.0;
  Reliability reliability;
  /// Replayed instead of failures that are drawn; `reliability` is then its profile_of().
  std::optional<FaultTrace> faults;
  RunPolicy policy;
  double slower = 0.0;  ///< One GPU takes so much longer: what does it cost? 0: not asked.
  /// What slow GPUs do to this plan's step, where that was simulated before.
  std::optional<SlowStates> slow_states;
  int workers = 1;  ///< That simulate it.
  int replicates = 1000;
  std::uint64_t seed = 1;
};

/// A tier as the run uses it at one batch.
struct RunTier {
  CheckpointTier tier = CheckpointTier::store;
  std::int64_t steps = 0;  ///< From one checkpoint to the next.
  CheckpointTimes times;
  Seconds slowed;  ///< By which a step is longer that begins while a write is on its way.
  /// Intervals that would cost the least if this tier stood alone, by the exact formula and by
  /// Young's; 0 where no failure would read it.
  Seconds best, young;
};

/// A stretch of a run at one batch.
struct RunPhase {
  std::int64_t gbs = 0;
  double steps = 0.0;
  Seconds step;  ///< Of the whole and undisturbed cluster.
  std::vector<RunTier> tiers;
};

/// A run before chance plays.
struct PreparedRun {
  Scenario scenario;
  Seconds step;  ///< Of the whole and undisturbed cluster, at the plan's batch.
  CheckpointSize size;
  std::vector<RunPhase> phases;  ///< The last one has the plan's batch.
  int gpus_of_unit = 0;
  WalkSetup setup;
  FailureLaw law;
  std::optional<FaultRecord> record;  ///< Replayed instead of the law.

  /// At the plan's batch.
  const std::vector<RunTier>& tiers() const { return phases.back().tiers; }
  double steps() const;  ///< In all.
  Seconds without_interruption() const;
};

/// Errors: infeasible where the job cannot run elastically, or where more is lost than done;
/// bad_input for policies that contradict themselves or the plan.
PreparedRun prepare_run(const Scenario& scenario, Seconds step, const RunQuestion& question);

/// The mean of ETTR by the formula of expected_run.hpp, for one tier as if it stood alone, with a
/// spare always at hand, and a rate that is `factor` times the profile's. Of several phases: their
/// steps over their times.
double expected_ettr(const PreparedRun& run, std::size_t tier, double factor = 1.0);
/// The same of the last tier.
double expected_ettr(const PreparedRun& run);

/// From the moment at which a slow GPU is to leave until steps go on: a checkpoint, a start.
Seconds replacement_stop(const PreparedRun& run);

/// Replicates of a prepared run. Errors (infeasible): some of them hardly got on.
std::vector<RunTally> finished_runs(const PreparedRun& run, const RunQuestion& question);

/// The replicate of a run's days that half of all others do not exceed, once more and with its log.
RunTally middle_run(const PreparedRun& run, const RunQuestion& question,
                    const std::vector<RunTally>& runs);

/// Units in repair, in runs that never wait for one.
struct SpareNeed {
  int units = 0;  ///< That do for 99 % of the time.
  /// Spares that are there and paid for: those that the user chose, else as many as that.
  int kept = 0;
  double short_of = 0.0;  ///< Share of the time in which more are in repair than are kept.
};

/// What became of all replicates.
struct RunFigures {
  ChanceRange days, ettr, goodput, interruptions, evictions;
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

/// Slow GPUs of a stage under the policy of a run.
struct StageEviction {
  int stage = 0;
  double longer = 0.0;  ///< The step, with the slowest GPU that the profile speaks of.
  /// A GPU is replaced that is slower by so much; of a rule that looks at what is left, halfway
  /// through. Infinite where none is.
  double from = 0.0;
};

struct RunBill {
  double gpu_hours = 0.0;  ///< With those of spares.
  Range rent_usd, energy_kwh, energy_usd;
  /// Of the energy: what the job's GPUs draw while it stands, and spares all the time.
  Range standing_kwh, spares_kwh;
  /// What GPU hours are paid for; they add up to 1: steps that last, steps that were lost, a job
  /// that stands, and spares.
  double steps = 0.0, redone = 0.0, standing = 0.0, spares = 0.0;
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
  std::vector<SlowGpu> slow;             ///< By stage, where that was asked.
  std::vector<StageEviction> evictions;  ///< By stage, where slow GPUs are replaced.
  RunBill bill;
};
TrainingRun training_run(const Scenario& scenario, Seconds step, const RunQuestion& question,
                         const Economics& economics);
/// The same without what improvements are worth and slow GPUs cost.
TrainingRun drawn_run(const Scenario& scenario, Seconds step, const RunQuestion& question,
                      const Economics& economics);

/// What becomes of a run's time by the closed form, with any number of spares, elastic or not,
/// `factor` times as many failures: policy_shares() of the last tier, or expected_ettr() where a
/// spare is always at hand. Rates do not change, and no GPU becomes slow.
PolicyShares expected_shares(const PreparedRun& run, double factor = 1.0);

/// Whether it speaks of a policy: one tier, failures that are drawn, each alone unless a spare is
/// always at hand.
bool has_expected_shares(const RunQuestion& question);

/// How long a run takes by the closed form, without a single draw: for the profile's rate, and for
/// the lowest and highest of nine in ten. What is not known of the rate and how months differ are
/// taken as logarithms that are independent: over m months, deviation^2 / m.
ChanceRange expected_days(const PreparedRun& run);

/// What a run of so many days on average costs, with `kept` spare units.
///
/// GPUs of a job that stands, and spares, draw what `economics` says of GPUs that wait; where it
/// says nothing, between nothing and as much as at work. Until a failure is found processes wait
/// for each other in kernels that run, and draw between the two.
RunBill run_bill(const PreparedRun& run, const RunFigures& figures, int kept,
                 const Economics& economics);

/// What each improvement alone would bring that is not there yet, under the same failures; the most
/// first.
std::vector<Improvement> run_worth(const TrainingRun& answer, const Economics& economics);

}  // namespace orrery
