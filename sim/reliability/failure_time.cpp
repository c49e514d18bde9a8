#include "sim/reliability/failure_time.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/reliability/expected_run.hpp"
#include "sim/reliability/fault_replay.hpp"
#include "sim/reliability/run_simulation.hpp"
#include "sim/reliability/run_states.hpp"
#include "sim/reliability/spare_pool.hpp"
#include "sim/reliability/training_run.hpp"

namespace orrery {
namespace {

Seconds seconds(Micros time) { return Seconds{static_cast<double>(time) / 1e6}; }

}  // namespace

FailureTime::FailureTime(const std::vector<ReplicateCause>& causes,
                         const std::vector<double>& per_day, double factor) {
  for (std::size_t i = 0; i < causes.size(); ++i)
    (causes[i].planned ? planned_ : unplanned_) += factor * per_day[i] / 86400.0;
  double found = 0.0;
  for (std::size_t i = 0; i < causes.size(); ++i)
    if (!causes[i].planned)
      found += factor * per_day[i] / 86400.0 *
               untouched(unplanned_, seconds(causes[i].detect_low), seconds(causes[i].detect_high));
  if (unplanned_ > 0.0) found_ = found / unplanned_;
}

double FailureTime::over_steps(const CheckpointCycle& cycle, Seconds start, Seconds stop) const {
  const Interruptions interruptions{unplanned_, found_ * untouched(unplanned_, start)};
  // Planned stops lose no steps: they take their share of the time.
  return time_over_work(interruptions, cycle) * (1.0 + planned_ * stop.si());
}

double least_time_over_steps(const Scenario& scenario, const Reliability& profile,
                             std::optional<BytesPerSecond> store) {
  return least_time_over_steps(scenario, profile, store, {}, false);
}

double least_time_over_steps(const Scenario& scenario, const Reliability& profile,
                             std::optional<BytesPerSecond> store, std::optional<int> spares,
                             bool elastic) {
  const int gpus = scenario.plan.gpus();
  const CheckpointTimes times =
      checkpoint_times(scenario, checkpoint_size(scenario), profile, CheckpointTier::store,
                       store.value_or(profile.store_per_gpu * gpus));
  const FailureDistribution distribution = distribution_of(profile, gpus);
  const std::vector<ReplicateCause> causes = causes_of(profile, {CheckpointRule{}});
  const FailureTime failures{causes, distribution.per_day, 1.0 / distribution.mean_batch()};
  const double rate = failures.unplanned();
  // Without failures none is the best; a day is near to it.
  const Seconds work =
      rate > 0.0 ? std::max(best_work(rate, times.stall), times.write) : Seconds{86400.0};
  const int groups = groups_of_job(scenario);
  elastic = elastic && groups > 1;
  if (!elastic && !spares) {
    const Seconds start = profile.restart.at(gpus) + times.load;
    const Seconds stop = times.stall + times.write + start;
    return failures.over_steps({work, times.stall, times.write}, start, stop);
  }
  // Steps so short that none is cut.
  constexpr int steps = 10'000;
  ReplicateSetup setup;
  setup.causes = causes;
  setup.restart = whole_micros(profile.restart.at(gpus));
  setup.regroup = whole_micros(profile.regroup.at(gpus));
  setup.elastic = elastic;
  setup.replicas_hold_all = replicas_hold_all(scenario.plan);
  setup.units = gpus / gpus_of_unit(scenario);
  setup.groups = groups;
  setup.racks = racks_of(scenario);
  setup.spares = spares.value_or(unlimited_spares);
  setup.refill = refill_of(profile);
  setup.tiers = {{whole_micros(times.stall), whole_micros(times.write), whole_micros(times.load)}};
  ReplicatePhase phase{groups, {}, {steps}, {0}};
  const Micros step = std::max<Micros>(1, whole_micros(work) / steps);
  for (int away = 0; away < (elastic ? groups : 1); ++away)
    phase.by_away.push_back({step, groups - away});
  setup.phases = {phase};
  return 1.0 / policy_shares(setup, distribution.per_day, distribution.repair_us,
                             std::numeric_limits<double>::infinity())
                   .goodput;
}

int paid_spares(const Scenario& scenario, const Reliability& profile, std::optional<int> spares,
                Seconds length) {
  if (spares) return *spares;
  const FailureDistribution distribution = distribution_of(profile, scenario.plan.gpus());
  const std::vector<ReplicateCause> causes = causes_of(profile, {CheckpointRule{}});
  ReplicateSetup setup;
  setup.racks = racks_of(scenario);
  setup.refill = refill_of(profile);
  const Micros end = whole_micros(length);
  const RunQuestion question;
  std::vector<RunTotals> runs(static_cast<std::size_t>(question.replicates));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    FailureDraws failures{distribution, question.seed, i};
    SparePool pool{setup, unlimited_spares};
    for (Failure failure = failures.next(); failure.at < end; failure = failures.next())
      if (causes[static_cast<std::size_t>(failure.cause)].replaces)
        pool.lose(failure.at, failure.repair, failure.presence);
    runs[i].with_away = pool.with_away(end);
  }
  return units_away(runs, covered_share);
}

// Units away at a time are Poisson's of rate x mean repair (Palm's theorem), whatever the repairs.
int rented_idle_units(const Scenario& scenario, const Reliability& profile) {
  const int idle = idle_units(scenario);
  if (idle == 0) return 0;
  const FailureDistribution distribution = distribution_of(profile, scenario.plan.gpus());
  const std::vector<ReplicateCause> causes = causes_of(profile, {CheckpointRule{}});
  double per_day = 0.0;
  for (std::size_t i = 0; i < causes.size(); ++i)
    if (causes[i].replaces) per_day += distribution.per_day[i];
  const double mean =
      per_day / (86400.0 * 1e6) *
      repair_within(distribution.repair_us, static_cast<double>(refill_of(profile)));
  int away = 0;
  double chance = std::exp(-mean), covered = chance;
  while (covered < covered_share && away < idle) {
    chance *= mean / ++away;
    covered += chance;
  }
  return std::min(idle, away * racks_of(scenario).island);
}

int spare_gpus(const Scenario& scenario, const Reliability& profile, int spares) {
  return (spares + rented_idle_units(scenario, profile)) * gpus_of_unit(scenario);
}

}  // namespace orrery
