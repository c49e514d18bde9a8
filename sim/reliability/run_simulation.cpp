#include "sim/reliability/run_simulation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/reliability/spare_pool.hpp"
#include "sim/reliability/stepping_job.hpp"

namespace orrery {

namespace {

constexpr std::uint64_t of_slow_gpus = 0;

class Replicate {
 public:
  Replicate(const ReplicateSetup& setup, FailureSource& failures)
      : setup_{setup},
        failures_{failures},
        job_{setup, totals_},
        pool_{setup, spares_of(setup)},
        slow_{setup.slowness, failures.other_random(of_slow_gpus)} {
    totals_.interruptions.resize(setup.causes.size());
    totals_.rate_factor = failures.rate_factor();
  }

  RunTotals to_the_end() {
    next_ = failures_.next();
    begin_with_repairs();
    begin_with_what_is_up();
    while (now_ < setup_.give_up) {
      slow_.settle(now_);
      job_.set_slow(slow_.step_ratio());
      pool_.settle(now_);
      const Micros back = away_ > 0 ? next_gain() : std::numeric_limits<Micros>::max();
      if (next_.at < back && !strikes(next_)) {
        next_ = failures_.next();
        continue;
      }
      run_until(std::min(next_.at, back));
      if (job_.finished()) break;
      if (now_ < std::min(next_.at, back))
        replace_slow_gpus();
      else if (next_.at < back)
        interrupt();
      else
        rejoin();
    }
    totals_.finished = job_.finished();
    totals_.with_away = pool_.with_away(now_);
    totals_.log = log_.stretches();
    return std::move(totals_);
  }

 private:
  void run_until(Micros limit) {
    const Micros from = now_, lost = totals_[RunTime::redone];
    now_ = job_.run(now_, limit, slow_.next_change());
    log(from, RunTime::productive);
    take_back(lost);
  }
  void log(Micros from, RunTime as) {
    if (setup_.keeps_log) log_.add(from, now_, as);
  }
  // Marks steps as redone that were lost since `redone`.
  void take_back(Micros redone) {
    if (setup_.keeps_log) log_.take_back(totals_[RunTime::redone] - redone);
  }
  // Groups that cannot run because units are missing.
  int groups_away() const { return setup_.groups_away(pool_.missing()); }
  bool can_run() const {
    if (!setup_.elastic) return pool_.missing() == 0;
    return static_cast<std::size_t>(groups_away()) < setup_.phases.front().by_away.size();
  }
  void set_away() {
    away_ = setup_.elastic ? groups_away() : 0;
    if (can_run()) job_.set_away(away_);
  }
  // When another group can join.
  Micros next_gain() const {
    if (groups_away() < away_) return now_;
    int missing = pool_.missing();
    while (setup_.groups_away(missing) >= away_) --missing;
    return pool_.down_to(missing);
  }
  static int spares_of(const ReplicateSetup& setup) {
    return setup.fleet > 0 ? std::min(setup.spares, setup.fleet - setup.units) : setup.spares;
  }

  // Units that failed before the run are in repair, and others have their places.
  void begin_with_repairs() {
    for (; next_.at < 0; next_ = failures_.next())
      if (cause_of(next_).replaces) pool_.lose(next_.at, next_.repair, next_.presence);
    pool_.settle(0);
  }

  // The job takes the units of the fleet that are up first, then the spares.
  void begin_with_what_is_up() {
    if (setup_.fleet == 0) return;
    const std::vector<Micros> down = failures_.down_at_start();
    const int up = setup_.fleet - static_cast<int>(down.size());
    const int wanted = setup_.units + spares_of(setup_);
    for (int i = 0; i < wanted - up; ++i) pool_.lose(0, down[static_cast<std::size_t>(i)], 0.0);
    set_away();
    if (!waits_for_units()) interrupt();
  }

  // True if it strikes the job. An elastic job with fewer nodes fails less often; a failure of a
  // fleet may strike a spare.
  bool strikes(const Failure& failure) {
    if (failure.fleet_up == 0) return failure.presence * setup_.groups < setup_.groups - away_;
    const double place = failure.presence * failure.fleet_up;
    const int there = setup_.units - pool_.missing();
    if (place < there) return true;
    pool_.settle(failure.at);
    if (place < there + pool_.ready()) pool_.lose(failure.at, failure.repair, 0.0);
    return false;
  }
  const ReplicateCause& cause_of(const Failure& failure) const {
    return setup_.causes[static_cast<std::size_t>(failure.cause)];
  }

  // Stops until `until`; false if the next failure comes first.
  bool wait_until(Micros until, RunTime as) {
    while (next_.at < until && !strikes(next_)) next_ = failures_.next();
    const Micros end = std::max(now_, std::min(until, next_.at));
    totals_[as] += end - now_;
    const Micros from = std::exchange(now_, end);
    log(from, as);
    pool_.settle(now_);
    return until <= next_.at;
  }

  void rejoin() {
    pool_.settle(now_);
    job_.keep();
    set_away();
    if (!wait_until(now_ + setup_.regroup, RunTime::restarting)) interrupt();
  }

  // Stops to replace the known slow GPUs where that pays, as for an announced failure.
  void replace_slow_gpus() {
    slow_.settle(now_);
    const ReplicateTier& last = setup_.tiers.back();
    const Micros start = (setup_.elastic ? setup_.regroup : setup_.restart) + last.load;
    const std::vector<SlowFleet::Evicted> evicted =
        slow_.evict(now_, last.stall + last.write + start, job_.left());
    if (evicted.empty()) return;
    ++totals_.evictions;
    const Micros from = std::exchange(now_, job_.save(now_, next_.at));
    log(from, RunTime::saving);
    for (const SlowFleet::Evicted& unit : evicted) pool_.lose(now_, unit.repair, unit.place);
    set_away();
    load_ = last.load;
    if (now_ == next_.at || !starts_again(start)) interrupt();
  }

  // Waits until the job can run; false where a failure comes first.
  bool waits_for_units() {
    while (!can_run()) {
      if (!wait_until(pool_.next_return(), RunTime::waiting)) return false;
      set_away();
    }
    return true;
  }

  // Takes spares, or waits for repairs, and starts; false where a failure comes first.
  bool starts_again(Micros start) {
    set_away();
    if (!waits_for_units()) return false;
    if (!wait_until(now_ + start, RunTime::restarting)) return false;
    load_ = 0;
    return true;
  }

  // The position of a failure among the job's present units, in [0, 1): one that cuts a checkpoint
  // may strike none of them.
  double place_of(const Failure& failure) const {
    const double place =
        failure.fleet_up > 0
            ? failure.presence * failure.fleet_up / std::max(1, setup_.units - pool_.missing())
            : failure.presence * setup_.groups / std::max(1, setup_.groups - away_);
    return place < 1.0 ? place : failure.presence;
  }

  // Recovers from the next failure, and from those during the recovery.
  void interrupt() {
    while (!recovers_from(std::exchange(next_, failures_.next())) && now_ < setup_.give_up) {
    }
  }

  // True if the failed unit leaves.
  bool lose_unit_of(const Failure& failure) {
    if (!cause_of(failure).replaces) return false;
    const double place = place_of(failure);
    slow_.replace_unit(place);
    pool_.lose(now_, failure.repair, setup_.fleet > 0 ? 0.0 : place);
    set_away();
    return true;
  }

  // False if another failure, which is then the next one, strikes before the job steps.
  bool recovers_from(const Failure& failure) {
    const ReplicateCause& cause = cause_of(failure);
    ++totals_.interruptions[static_cast<std::size_t>(failure.cause)];
    bool replaces = lose_unit_of(failure);
    // Simultaneous failures interrupt once.
    for (; next_.follows && next_.at == failure.at; next_ = failures_.next())
      if (strikes(next_)) replaces |= lose_unit_of(next_);
    const bool regroups = replaces && setup_.elastic;
    if (cause.planned) {
      const Micros from = std::exchange(now_, job_.save(now_, next_.at));
      log(from, RunTime::saving);
      load_ = setup_.tiers.back().load;
      if (now_ == next_.at) return false;
    } else if (regroups && setup_.replicas_hold_all && can_run()) {
      job_.keep();
    } else {
      const Micros lost = totals_[RunTime::redone];
      load_ = job_.fall_back(now_, cause.first_tier);
      take_back(lost);
    }
    const Micros detection =
        cause.detect_low +
        static_cast<Micros>(failure.detection *
                            static_cast<double>(cause.detect_high - cause.detect_low));
    if (!wait_until(now_ + detection, RunTime::detecting)) return false;
    return starts_again((regroups ? setup_.regroup : setup_.restart) + load_);
  }

  const ReplicateSetup& setup_;
  FailureSource& failures_;
  RunTotals totals_;
  SteppingJob job_;
  SparePool pool_;
  SlowFleet slow_;
  RunLog log_;
  Failure next_;
  Micros now_ = 0;
  Micros load_ = 0;  ///< Time to read the checkpoint of the last fall-back; 0 once it was read.
  int away_ = 0;     ///< Groups that the job steps without.
};

}  // namespace

RunTotals run_replicate(const ReplicateSetup& setup, FailureSource&& failures) {
  return Replicate{setup, failures}.to_the_end();
}

namespace {

template <class Source, class Of>
std::vector<RunTotals> replicates_of(const ReplicateSetup& setup, const Of& of, std::uint64_t seed,
                                     int replicates) {
  std::vector<RunTotals> runs;
  runs.reserve(static_cast<std::size_t>(replicates));
  for (int i = 0; i < replicates; ++i)
    runs.push_back(run_replicate(setup, Source{of, seed, static_cast<std::uint64_t>(i)}));
  return runs;
}

}  // namespace

ChanceRange chance_range(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  ChanceRange range;
  for (const double value : values) range.mean += value / static_cast<double>(values.size());
  // Linear interpolation between two values.
  const auto quantile = [&](double share) {
    const double at = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(at);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (at - std::floor(at)) * (values[above] - values[below]);
  };
  range.low = quantile(0.05);
  range.median = quantile(0.5);
  range.high = quantile(0.95);
  return range;
}

std::vector<RunTotals> run_replicates(const ReplicateSetup& setup,
                                      const FailureDistribution& distribution, std::uint64_t seed,
                                      int replicates) {
  return replicates_of<FailureDraws>(setup, distribution, seed, replicates);
}

std::vector<RunTotals> run_replicates(const ReplicateSetup& setup, const FaultRecord& record,
                                      std::uint64_t seed, int replicates) {
  return replicates_of<FaultReplay>(setup, record, seed, replicates);
}

std::vector<double> shares_away(std::span<const RunTotals> runs) {
  std::vector<double> time;
  double all = 0.0;
  for (const RunTotals& run : runs) {
    if (time.size() < run.with_away.size()) time.resize(run.with_away.size());
    for (std::size_t i = 0; i < run.with_away.size(); ++i) {
      time[i] += static_cast<double>(run.with_away[i]);
      all += static_cast<double>(run.with_away[i]);
    }
  }
  for (double& share : time) share /= all;
  return time;
}

int units_away(std::span<const RunTotals> runs, double share) {
  const std::vector<double> shares = shares_away(runs);
  double sum = 0.0;
  for (std::size_t i = 0; i < shares.size(); ++i)
    if ((sum += shares[i]) >= share) return static_cast<int>(i);
  return static_cast<int>(shares.size());
}

}  // namespace orrery
