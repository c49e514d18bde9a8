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

/// A question about a run that failures interrupt.
struct RunQuestion {
  double tokens = 0.0;
  Reliability reliability;
  /// Replayed instead of sampled failures; `reliability` is then its profile_of().
  std::optional<FaultTrace> faults;
  RunPolicy policy;
  double slower = 0.0;  ///< Slowdown of one GPU whose cost is wanted. 0: none.
  /// Effects of slow GPUs on this plan's step, if already simulated.
  std::optional<SlowStates> slow_states;
  int workers = 1;  ///< Processes of the simulation.
  int replicates = 1000;
  std::uint64_t seed = 1;
};

/// A tier as the run uses it at one batch.
struct RunTier {
  CheckpointTier tier = CheckpointTier::store;
  std::int64_t steps = 0;  ///< Interval between checkpoints.
  CheckpointTimes times;
  Seconds slowed;  ///< Extra time of a step that begins during a write.
  /// Intervals that would cost the least if this were the only tier, by the exact formula and by
  /// Young's; 0 if no failure would read it.
  Seconds best, young;
};

/// A stretch of a run at one batch.
struct RunPhase {
  std::int64_t gbs = 0;
  double steps = 0.0;
  Seconds step;  ///< Step of the whole and undisturbed cluster.
  std::vector<RunTier> tiers;
};

/// A run with all inputs of its replicates.
struct PreparedRun {
  Scenario scenario;
  Seconds step;  ///< Step of the whole and undisturbed cluster, at the plan's batch.
  CheckpointSize size;
  std::vector<RunPhase> phases;  ///< The last one has the plan's batch.
  int gpus_of_unit = 0;
  int idle_units = 0;   ///< Left idle in the job's racks: spares besides those that are kept.
  int rented_idle = 0;  ///< Of these, rented with the job: rented_idle_units().
  ReplicateSetup setup;
  FailureDistribution distribution;
  std::optional<FaultRecord> record;  ///< Replayed instead of sampled failures.

  /// Tiers at the plan's batch.
  const std::vector<RunTier>& tiers() const { return phases.back().tiers; }
  double steps() const;  ///< All steps.
  Seconds without_interruption() const;
};

/// Errors: infeasible where the job cannot run elastically, or where more is lost than done;
/// bad_input for policies that contradict themselves or the plan.
PreparedRun prepare_run(const Scenario& scenario, Seconds step, const RunQuestion& question);

/// The mean of ETTR by the formula of expected_run.hpp for one tier alone, with unlimited spares,
/// and a rate that is `factor` times the profile's. Several phases: their steps over their times.
double expected_ettr(const PreparedRun& run, std::size_t tier, double factor = 1.0);
/// The same for the last tier.
double expected_ettr(const PreparedRun& run);

/// Time to replace a slow GPU: a checkpoint, a start.
Seconds replacement_stop(const PreparedRun& run);

/// Replicates of a prepared run. Errors (infeasible): some of them do not finish.
std::vector<RunTotals> finished_runs(const PreparedRun& run, const RunQuestion& question);

/// The replicate of median length, simulated again with its log.
RunTotals median_run(const PreparedRun& run, const RunQuestion& question,
                     const std::vector<RunTotals>& runs);

/// How many spares a run needs, and how often those that are paid for do not suffice.
struct SpareNeed {
  int units = 0;  ///< Enough for 99 % of the time of runs with unlimited spares.
  /// Spares that are paid for: the user's choice, else `units`.
  int kept = 0;
  /// Share of the time of these runs in which more units are in repair than are kept. A job that
  /// needs all its units finds the failure in a part of it, and waits in the rest.
  double short_of = 0.0;
};

/// Statistics of all replicates. The means of `ettr` and `goodput` are shares of the time of all
/// runs, as `shares` are: time of steps over wall time, each summed over replicates. So goodput and
/// what is lost add up to 1, and goodput is the days without interruption over the mean of `days`.
/// Their intervals and medians are of single runs.
struct RunFigures {
  ChanceRange days, ettr, goodput, interruptions, evictions;
  std::array<double, run_times> shares{};  ///< Shares of the time of all runs; they add up to 1.
  std::vector<double> by_cause;            ///< Interruptions of a run, on average.
  std::vector<double> days_of;             ///< Length of each replicate.
};
RunFigures figures_of(const std::vector<RunTotals>& runs);

/// The gain of one change, replicate by replicate under the same failures.
struct Improvement {
  std::string what;
  ChanceRange days;   ///< Saved.
  double ettr = 0.0;  ///< Gained, of the time of all runs.
  /// GPU hours by which the change reduces the run's bill on average, spares included; negative if
  /// it costs more.
  double gpu_hours = 0.0;
  Range rent_usd;  ///< Rent of the absolute value of `gpu_hours`.
};

/// One slow GPU that does not fail.
struct SlowGpu {
  int stage = 0;        ///< Pipeline stage of the GPU.
  double longer = 0.0;  ///< Lengthening of the step, as a share of it.
  /// Replacing it takes a checkpoint, a stop and a start, which pays if at least so much of the run
  /// is left. Infinite if the GPU costs nothing.
  Seconds pays_after;
};

/// Slow GPUs of a stage under the policy of a run.
struct StageEviction {
  int stage = 0;
  double longer = 0.0;  ///< Lengthening of the step by the profile's slowest GPU.
  /// Least slowdown of a GPU that is replaced; if that depends on the remaining time, halfway
  /// through. Infinite if none is.
  double from = 0.0;
};

struct RunBill {
  double gpu_hours = 0.0;  ///< Those of spares included.
  Range rent_usd, energy_kwh, energy_usd;
  bool has_own_rent = false;  ///< Economics::has_own_rent.
  /// Parts of the energy: the job's GPUs while it is stopped, and spares all the time.
  Range stopped_kwh, spares_kwh;
  /// Shares of the GPU hours, which add up to 1: retained steps, lost steps, a stopped job, and
  /// spares.
  double steps = 0.0, redone = 0.0, stopped = 0.0, spares = 0.0;
};

/// The answer of `orrery run`.
struct TrainingRun {
  RunQuestion question;
  PreparedRun prepared;
  std::vector<RunTotals> runs;
  RunFigures figures;
  SpareNeed spares;
  std::optional<double> expected_ettr;  ///< The closed form, if it covers this policy.
  std::vector<Improvement> worth;
  std::vector<SlowGpu> slow;             ///< One a stage, if requested.
  std::vector<StageEviction> evictions;  ///< One a stage, if slow GPUs are replaced.
  RunBill bill;
};
TrainingRun training_run(const Scenario& scenario, Seconds step, const RunQuestion& question,
                         const Economics& economics);
/// The same without the gains of improvements and the costs of slow GPUs.
TrainingRun sampled_run(const Scenario& scenario, Seconds step, const RunQuestion& question,
                        const Economics& economics);

/// Shares of a run's time by the closed form, with any number of spares, elastic or not, with
/// `factor` times as many failures: policy_shares() of the last tier, or expected_ettr() with
/// unlimited spares. Rates do not change, and no GPU becomes slow.
PolicyShares expected_shares(const PreparedRun& run, double factor = 1.0);

/// True if the closed form covers a policy: one tier, sampled failures, each alone unless spares
/// are unlimited.
bool has_expected_shares(const RunQuestion& question);

/// The cost of a run of so many days on average, with `kept` spare units besides those that are
/// idle in the job's racks.
///
/// GPUs of a stopped job, and spares, draw the power of waiting GPUs in `economics`; without one,
/// between nothing and as much as at work. Until a failure is found processes wait for each other
/// in running kernels, and draw between the two.
RunBill run_bill(const PreparedRun& run, const RunFigures& figures, int kept,
                 const Economics& economics);

/// The gains of improvements that are not in place, each alone under the same failures, sorted by
/// days saved.
std::vector<Improvement> run_worth(const TrainingRun& answer, const Economics& economics);

}  // namespace orrery
