#include "sim/reliability/slow_gpus.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sim/reliability/run_simulation.hpp"

namespace orrery::slow_gpus_test {
namespace {

constexpr Micros second = 1'000'000;
constexpr Micros day = 86'400 * second;

double seconds(Micros time) { return static_cast<double>(time) / 1e6; }

// Two stages: all that a GPU of the first loses the step loses; the second has slack up to 5 %.
Slowness two_stages(double per_day) {
  Slowness slow;
  slow.per_day = per_day;
  slow.least = slow.most = 0.1;
  slow.gpus_of_stage = {512, 512};
  slow.units = 128;
  slow.knots = {0.0, 0.05, 0.1};
  slow.ratios = {{1.0, 1.05, 1.1}, {1.0, 1.0, 1.05}};
  slow.repair_us = {1e9, 1e9};
  return slow;
}

// 8 s steps, checkpoints that cost nothing, no failures.
ReplicateSetup steps_of_days(double days) {
  ReplicateSetup setup;
  setup.phases = {
      {static_cast<std::int64_t>(days * 86400.0 / 8.0) * 100, {{8 * second, 100}}, {100}, {0}}};
  setup.tiers = {{}};
  setup.causes = {{0, 0, true, false, 0}};
  setup.restart = 200 * second;
  setup.spares = unlimited_spares;
  return setup;
}

FailureDistribution failures(double per_day) {
  FailureDistribution distribution;
  distribution.per_day = {per_day};
  distribution.repair_us = {1e9, 1e11};
  return distribution;
}

TEST(Slowness, StepsLieBetweenItsKnotsAndBeyondThem) {
  const Slowness slow = two_stages(1.0);
  EXPECT_DOUBLE_EQ(slow.step_ratio(1, 0.025), 1.0);
  EXPECT_DOUBLE_EQ(slow.step_ratio(1, 0.075), 1.025);
  EXPECT_DOUBLE_EQ(slow.step_ratio(1, 0.2), 1.15);
  EXPECT_DOUBLE_EQ(slow.step_ratio(0, 0.2), 1.2);
  // The stage with slack bears 5 % more.
  EXPECT_DOUBLE_EQ(slow.slower_for(0, 0.02), 0.02);
  EXPECT_DOUBLE_EQ(slow.slower_for(1, 0.02), 0.07);
}

TEST(Slowness, AStageThatNeverCostsAnythingHasNoThreshold) {
  Slowness slow = two_stages(1.0);
  slow.ratios[1] = {1.0, 1.0, 1.0};
  EXPECT_TRUE(std::isinf(slow.slower_for(1, 0.02)));
}

// The median of the largest of n normal draws: P(x)^n = 1/2. Of one it is 0, of two 0.5450 (P =
// 0.70711), of 1,024 3.2056 (1 - P = 6.7667e-4), of 16,384 3.9310 (4.2305e-5), by tables of P.
TEST(LargestOfNormal, IsItsQuantile) {
  EXPECT_NEAR(largest_of_normal(1, 0.5), 0.0, 5e-4);
  EXPECT_NEAR(largest_of_normal(2, 0.5), 0.5450, 1e-3);
  EXPECT_NEAR(0.5 * std::erfc(largest_of_normal(1024, 0.5) / std::sqrt(2.0)), 6.7667e-4, 2e-6);
  EXPECT_NEAR(0.5 * std::erfc(largest_of_normal(16384, 0.5) / std::sqrt(2.0)), 4.2305e-5, 1.5e-7);
  EXPECT_EQ(largest_of_normal(2, 0.01), 0.0);
}

// Without failures and evictions, GPUs that become slow at l a day in one stage of ratio r: the
// first of them, exponential, makes every later step r times as long. Of a run of W days
// undisturbed steps last min(W, T) + r (W - T)+ with E[min(W, T)] = (1 - exp(-l W)) / l.
TEST(Replicate, SlowGpusThatStayAreTheClosedForm) {
  ReplicateSetup setup = steps_of_days(20.0);
  setup.slowness = two_stages(0.1);
  setup.slowness.ratios[1] = setup.slowness.ratios[0];
  double days = 0.0;
  for (const RunTotals& run : run_replicates(setup, failures(0.0), 1, 10'000)) {
    days += seconds(run.total()) / 86400.0 / 10'000.0;
    EXPECT_EQ(run.total(), run[RunTime::productive] + run[RunTime::slow_gpus]);
    EXPECT_EQ(run[RunTime::productive], 20 * day);
    EXPECT_EQ(run.evictions, 0);
  }
  const double whole = (1.0 - std::exp(-0.1 * 20.0)) / 0.1;
  EXPECT_NEAR(days / (whole + 1.1 * (20.0 - whole)), 1.0, 1e-3);
}

// Both stages reach the threshold, a spare is always ready, and finding the GPU takes a fixed time
// F: of W days of steps, those are lost that begin while a slow GPU is there. Found and replaced
// one after the other they are an M/D/infinity queue with a stop whenever one is found, but stops
// are short against the time between two: slow for l F of the time, a stop for each.
TEST(Replicate, EvictionsCostTheTimeUntilTheyAreFoundAndAStop) {
  ReplicateSetup setup = steps_of_days(100.0);
  setup.slowness = two_stages(0.2);
  setup.slowness.ratios[1] = setup.slowness.ratios[0];
  setup.slowness.found_low = setup.slowness.found_high = 7200 * second;
  setup.slowness.evict = 0.05;
  double lagged = 0.0, stops = 0.0, standing = 0.0;
  for (const RunTotals& run : run_replicates(setup, failures(0.0), 1, 1000)) {
    lagged += seconds(run[RunTime::slow_gpus]);
    stops += run.evictions;
    standing += seconds(run[RunTime::restarting]);
  }
  EXPECT_NEAR(stops / 1000.0, 20.0, 0.5);  // 0.2 a day.
  EXPECT_DOUBLE_EQ(standing, 200.0 * stops);
  // Of 7,200 s of steps that take 1.1 times as long a tenth of 7,200 / 1.1 s is lost.
  EXPECT_NEAR(lagged / stops, 0.1 * 7200.0 / 1.1, 8.0);
}

// At a threshold of 6 % the first stage's GPUs leave, and the second's, which cost 5 %, stay.
TEST(Replicate, AStageWithSlackKeepsItsSlowGpus) {
  ReplicateSetup setup = steps_of_days(100.0);
  setup.slowness = two_stages(0.2);
  setup.slowness.evict = 0.06;
  double stops = 0.0;
  for (const RunTotals& run : run_replicates(setup, failures(0.0), 1, 500)) stops += run.evictions;
  EXPECT_NEAR(stops / 500.0, 10.0, 0.5);
}

// A stop of 200 s pays for 10 % of steps that last longer than 2,000 s: nothing is evicted in the
// last of them. So no run takes longer for the rule than without it, but for what is cut.
TEST(Replicate, EvictsWhereItPays) {
  ReplicateSetup setup = steps_of_days(1.0);
  setup.slowness = two_stages(20.0);
  ReplicateSetup best = setup, all = setup;
  best.slowness.evict = 0.0;
  all.slowness.evict = 1e-9;
  double stay = 0.0, pays = 0.0, always = 0.0;
  for (std::uint64_t i = 0; i < 500; ++i) {
    const FailureDistribution distribution = failures(0.0);
    stay += seconds(run_replicate(setup, FailureDraws{distribution, 1, i}).total());
    pays += seconds(run_replicate(best, FailureDraws{distribution, 1, i}).total());
    always += seconds(run_replicate(all, FailureDraws{distribution, 1, i}).total());
  }
  EXPECT_LT(pays, stay);
  EXPECT_LT(pays, always);
}

// The failures of a run do not know of slow GPUs, whose draws are their own.
TEST(Replicate, MeetsTheSameFailuresWithSlowGpus) {
  const FailureDistribution distribution = failures(2.0);
  ReplicateSetup setup = steps_of_days(30.0);
  setup.slowness = two_stages(0.0);
  const RunTotals without = run_replicate(setup, FailureDraws{distribution, 1, 7});
  EXPECT_EQ(without[RunTime::slow_gpus], 0);
  setup.slowness = two_stages(1e-9);
  EXPECT_EQ(run_replicate(setup, FailureDraws{distribution, 1, 7}).of, without.of);
}

// A unit that fails takes its slow GPU with it. With one unit every failure does: at f failures a
// day a slow GPU stays for 1 / f days, so that the step is slow for l / (l + f) of the time.
TEST(Replicate, FailuresTakeSlowGpusWithThem) {
  ReplicateSetup setup = steps_of_days(200.0);
  setup.phases[0].every = {1};
  setup.restart = 1;
  setup.slowness = two_stages(1.0);
  setup.slowness.ratios[1] = setup.slowness.ratios[0];
  setup.slowness.units = 1;
  double lagged = 0.0, all = 0.0;
  for (const RunTotals& run : run_replicates(setup, failures(3.0), 1, 200)) {
    lagged += seconds(run[RunTime::slow_gpus]);
    all += seconds(run.total());
  }
  // Of the time that is slow, 1 - 1 / 1.1 is lost.
  EXPECT_NEAR(lagged / all / (1.0 / 4.0 * (1.0 - 1.0 / 1.1)), 1.0, 0.02);
}

// Healthy GPUs that differ by 1 % in two stages of 512: the slowest of a stage is the largest of
// 512 normal draws, and the step that of the slower stage, of 1,024: 3.24 deviations on average
// (the median is 3.21; Gumbel's law adds 0.1159 / 3.21).
TEST(Replicate, HealthyGpusThatDifferCostTheSlowestOfAll) {
  ReplicateSetup setup = steps_of_days(1.0);
  setup.slowness = two_stages(0.0);
  setup.slowness.ratios[1] = setup.slowness.ratios[0];
  setup.slowness.deviation = 0.01;
  double lagged = 0.0;
  for (const RunTotals& run : run_replicates(setup, failures(0.0), 1, 2000))
    lagged += seconds(run[RunTime::slow_gpus]) / 86400.0 / 2000.0;
  EXPECT_NEAR(lagged, 0.0324, 4e-4);
}

// Everything at once: time adds up, every step lasts once, cycles at once are as step by step.
TEST(Replicate, LosesNoTimeWithSlowGpus) {
  ReplicateSetup setup = steps_of_days(10.0);
  setup.tiers = {{3 * second, 30 * second, 40 * second}};
  setup.phases[0].slowed = {400'000};
  setup.slowness = two_stages(2.0);
  setup.slowness.evict = 0.0;
  setup.slowness.deviation = 0.01;
  setup.slowness.found_high = 3 * 3600 * second;
  setup.spares = 1;
  ReplicateSetup slow = setup;
  slow.step_by_step = true;
  setup.keeps_log = true;
  const FailureDistribution distribution = failures(3.0);
  for (std::uint64_t i = 0; i < 100; ++i) {
    const RunTotals run = run_replicate(setup, FailureDraws{distribution, 1, i});
    EXPECT_EQ(run[RunTime::productive], 10 * day);
    Micros away = 0, logged = 0;
    for (const Micros time : run.with_away) away += time;
    EXPECT_EQ(run.total(), away);
    for (const RunStretch& stretch : run.log) {
      EXPECT_EQ(stretch.from, logged);
      logged = stretch.to;
    }
    EXPECT_EQ(run.total(), logged);
    const RunTotals stepped = run_replicate(slow, FailureDraws{distribution, 1, i});
    EXPECT_EQ(run.of, stepped.of) << i;
    EXPECT_EQ(run.evictions, stepped.evictions);
  }
}

}  // namespace
}  // namespace orrery::slow_gpus_test
