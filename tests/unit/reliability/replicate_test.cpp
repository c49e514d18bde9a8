#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "sim/reliability/expected_run.hpp"
#include "sim/reliability/run_simulation.hpp"

namespace orrery::replicate_test {
namespace {

constexpr Micros second = 1'000'000;
constexpr Micros day = 86'400 * second;

double seconds(Micros time) { return static_cast<double>(time) / 1e6; }

// 8 s steps of 100 samples.
ReplicateSetup steps_of_days(double days, std::int64_t every, const ReplicateTier& tier,
                             Micros slowed = 0) {
  ReplicateSetup setup;
  const auto steps = static_cast<std::int64_t>(days * 86400.0 / 8.0);
  setup.phases = {{steps * 100, {{8 * second, 100}}, {every}, {slowed}}};
  setup.tiers = {tier};
  setup.causes = {{0, 600 * second, true, false, 0}};
  setup.restart = 200 * second;
  setup.spares = 1'000'000;
  return setup;
}

FailureDistribution failures(double per_day) {
  FailureDistribution distribution;
  distribution.per_day = {per_day};
  distribution.repair_us = {1e9, 1e11};
  return distribution;
}

// Whatever may happen at once: ramps, tiers, planned stops, units that are missing, replicas away.
ReplicateSetup everything(bool elastic) {
  ReplicateSetup setup;
  setup.phases = {{70'000,
                   {{2 * second, 10}, {2 * second, 9}, {2 * second, 8}},
                   {1, 40, 900},
                   {0, 40'000, 500'000}},
                  {2'000'007,
                   {{8 * second, 100}, {8 * second, 90}, {7 * second, 80}},
                   {1, 75, 450},
                   {0, 30'000, 400'000}}};
  setup.tiers = {
      {7'000, 0, 7'000}, {20'000, 300'000, 100'000}, {3 * second, 30 * second, 40 * second}};
  setup.causes = {{0, 600 * second, true, false, 1},
                  {60 * second, 60 * second, false, false, 0},
                  {0, 0, false, true, 0},
                  {600 * second, 600 * second, true, false, 2}};
  setup.restart = 200 * second;
  setup.regroup = 30 * second;
  setup.elastic = elastic;
  setup.units = setup.groups = 10;
  setup.spares = 1;
  return setup;
}

FailureDistribution many_failures() {
  FailureDistribution distribution;
  distribution.per_day = {9.0, 4.0, 2.0, 1.0};
  distribution.month = 29 * day;
  distribution.month_deviation = 0.7;
  distribution.error.factor = 1.7;
  distribution.repair_us = {1e9, 5e9, 1e11};
  return distribution;
}

// Within 0.1 % at 10,000 replicates, with what the last write adds at the end of a run.
TEST(Replicate, IsTheClosedForm) {
  struct Case {
    double per_day;
    std::int64_t every;
    ReplicateTier tier;
  };
  for (const Case& one :
       {Case{8.63, 30, {3 * second, 2'800'000, 3 * second}}, Case{8.63, 100, {60 * second, 0, 0}},
        Case{40.0, 20, {second, 120 * second, 10 * second}},
        Case{2.0, 450, {0, 300 * second, 60 * second}}}) {
    ReplicateSetup setup = steps_of_days(10.0, one.every, one.tier);
    const FailureDistribution distribution = failures(one.per_day);
    double days = 0.0;
    for (const RunTotals& run : run_replicates(setup, distribution, 1, 10'000))
      days += static_cast<double>(run.total()) / static_cast<double>(day) / 10'000.0;
    const double rate = one.per_day / 86400.0;
    const Seconds start{200.0 + seconds(one.tier.load)};
    const Interruptions interruptions{
        rate, untouched(rate, start) * untouched(rate, Seconds{0}, Seconds{600})};
    const double expected = time_over_work(
        interruptions, {Seconds{8.0 * static_cast<double>(one.every)},
                        Seconds{seconds(one.tier.stall)}, Seconds{seconds(one.tier.write)}});
    const double last_write = seconds(one.tier.write) / 86400.0;
    EXPECT_NEAR((days - last_write) / (10.0 * expected), 1.0, 1e-3) << one.per_day;
  }
}

// The time of a run is counted twice: by what the job does, and by how many units are in repair.
// Whole microseconds add up exactly, in every replicate.
TEST(Replicate, LosesNoTime) {
  for (const bool elastic : {false, true})
    for (const RunTotals& run : run_replicates(everything(elastic), many_failures(), 1, 300)) {
      EXPECT_TRUE(run.finished);
      EXPECT_EQ(run.total(), std::accumulate(run.with_away.begin(), run.with_away.end(), Micros{}));
      for (const Micros part : run.of) EXPECT_GE(part, 0);
    }
}

// What lasts is every step once: 7,000 of 2 s, and 20,001 of 8 s, the last of them for 7 samples.
TEST(Replicate, CountsEveryStepOnce) {
  for (const RunTotals& run : run_replicates(everything(false), many_failures(), 1, 300))
    EXPECT_EQ(run[RunTime::productive], (7'000 * 2 + 20'001 * 8) * second);
}

TEST(Replicate, TakesCyclesAtOnceAsStepByStep) {
  for (const bool elastic : {false, true})
    for (const Micros slowed : {Micros{0}, Micros{700'000}}) {
      ReplicateSetup setup = everything(elastic);
      for (ReplicatePhase& phase : setup.phases) phase.slowed.back() = slowed;
      ReplicateSetup slow = setup;
      slow.step_by_step = true;
      const FailureDistribution distribution = many_failures();
      for (std::uint64_t i = 0; i < 50; ++i) {
        const RunTotals quick = run_replicate(setup, FailureDraws{distribution, 1, i});
        const RunTotals stepped = run_replicate(slow, FailureDraws{distribution, 1, i});
        EXPECT_EQ(quick.of, stepped.of) << i;
        EXPECT_EQ(quick.interruptions, stepped.interruptions);
      }
    }
}

// Without failures: steps, a stall after every interval, and the last write. 1,080 steps of 8 s,
// every 100 of them and at the end.
TEST(Replicate, OfARunWithoutFailuresIsASum) {
  const ReplicateSetup setup = steps_of_days(0.1, 100, {3 * second, 20 * second, 0}, 100'000);
  const RunTotals run = run_replicate(setup, FailureDraws{failures(0.0), 1, 0});
  EXPECT_EQ(run[RunTime::productive], 1'080 * 8 * second);
  EXPECT_EQ(run[RunTime::saving], 11 * 3 * second + 20 * second);
  // A write of 20 s overlaps three steps of 8.1 s, but for the last one.
  EXPECT_EQ(run[RunTime::slowed_by_writes], 10 * 3 * 100'000);
  EXPECT_EQ(run.all_interruptions(), 0);
}

// A job of R replicas that loses nothing but those away: each is away for a share a = l r / (1 + l
// r) of the time, where l is its own rate and r the mean repair, whatever the distribution of
// repairs (the binomial case of Erlang's insensitivity). Work goes on at 1 - a.
TEST(Replicate, ElasticJobsRunAtTheAvailabilityOfTheirReplicas) {
  ReplicateSetup setup = steps_of_days(400.0, 1'000'000'000, {});
  setup.elastic = setup.replicas_hold_all = true;
  setup.causes = {{0, 0, true, false, 0}};
  setup.restart = setup.regroup = 1;
  setup.spares = 0;
  setup.units = setup.groups = 10;
  setup.phases[0].samples = 400LL * 86'400 * 100;
  setup.phases[0].by_away.clear();
  for (int away = 0; away < 10; ++away)
    setup.phases[0].by_away.push_back({second, (10 - away) * 10});
  FailureDistribution distribution = failures(2.0);
  distribution.repair_us = {4e9, 4e11};  // Mean (400 - 4) / ln(100) thousand seconds: 0.995 days.
  const double load = 0.2 * (4e11 - 4e9) / std::log(100.0) / static_cast<double>(day);
  double at_work = 0.0, time = 0.0;
  for (const RunTotals& run : run_replicates(setup, distribution, 1, 40)) {
    at_work += seconds(run[RunTime::productive]);
    time += seconds(run.total());
  }
  EXPECT_NEAR(at_work / time * (1.0 + load), 1.0, 0.01);
}

// Little's law: units in repair are the rate times the mean repair, 3 a day x 2 days.
TEST(Replicate, HasAsManyUnitsInRepairAsLittlesLawSays) {
  ReplicateSetup setup = steps_of_days(300.0, 100, {});
  FailureDistribution distribution = failures(3.0);
  distribution.repair_us = {2.0 * 86400e6, 2.0 * 86400e6};
  double sum = 0.0, time = 0.0;
  const std::vector<RunTotals> runs = run_replicates(setup, distribution, 1, 50);
  for (const RunTotals& run : runs)
    for (std::size_t away = 0; away < run.with_away.size(); ++away) {
      sum += static_cast<double>(away) * seconds(run.with_away[away]);
      time += seconds(run.with_away[away]);
    }
  EXPECT_NEAR(sum / time, 6.0, 0.12);  // It begins with none, which takes a three-hundredth.
  // Poisson of mean 6: 99 % of the time at most 12 are away, with 98 % at most 11.
  EXPECT_NEAR(units_away(runs, 0.99), 12, 0);
}

// Under the same failures a job that finds them at once and one with spares end first.
TEST(Replicate, BetterPoliciesEndSooner) {
  const FailureDistribution distribution = many_failures();
  ReplicateSetup setup = everything(false);
  ReplicateSetup spares = setup, quick = setup;
  spares.spares = 100;
  for (ReplicateCause& cause : quick.causes) cause.detect_low = cause.detect_high = 0;
  double as_is = 0.0, with_spares = 0.0, detected = 0.0;
  for (std::uint64_t i = 0; i < 100; ++i) {
    as_is += seconds(run_replicate(setup, FailureDraws{distribution, 1, i}).total());
    const RunTotals run = run_replicate(spares, FailureDraws{distribution, 1, i});
    with_spares += seconds(run.total());
    EXPECT_EQ(run[RunTime::waiting], 0);
    detected += seconds(run_replicate(quick, FailureDraws{distribution, 1, i}).total());
  }
  EXPECT_LT(with_spares, as_is);
  EXPECT_LT(detected, as_is);
}

// An announced stop keeps its steps: what is lost is the write, the start, and a part of a step.
TEST(Replicate, PlannedStopsLoseNoSteps) {
  ReplicateSetup setup = steps_of_days(10.0, 1000, {3 * second, 20 * second, second});
  setup.causes = {{0, 0, false, true, 0}};
  for (const RunTotals& run : run_replicates(setup, failures(5.0), 1, 50)) {
    EXPECT_LE(run[RunTime::redone], run.all_interruptions() * (8 + 3 + 20 + 201) * second);
    EXPECT_EQ(run[RunTime::detecting], 0);
  }
}

// Copies that a failure leaves in memory cost less than those of the store.
TEST(Replicate, FallsBackToTheNearestCopyThatIsLeft) {
  ReplicateSetup setup = steps_of_days(10.0, 450, {3 * second, 30 * second, 40 * second});
  const auto redone = [&](std::size_t first_tier) {
    ReplicateSetup two = setup;
    two.tiers.insert(two.tiers.begin(), ReplicateTier{7'000, 7'000, 7'000});
    two.phases[0].every = {1, 450};
    two.phases[0].slowed = {0, 0};
    two.causes[0].first_tier = first_tier;
    double sum = 0.0;
    for (const RunTotals& run : run_replicates(two, failures(9.0), 1, 50))
      sum += seconds(run[RunTime::redone]) / run.all_interruptions();
    return sum / 50.0;
  };
  EXPECT_LT(redone(0), 10.0);             // A part of a step.
  EXPECT_NEAR(redone(1), 1800.0, 200.0);  // Half an hour, and what falls into recoveries takes off.
}

}  // namespace
}  // namespace orrery::replicate_test
