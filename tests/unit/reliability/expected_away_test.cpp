#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "sim/reliability/expected_run.hpp"
#include "sim/reliability/run_simulation.hpp"

namespace orrery::expected_away_test {
namespace {

constexpr Micros second = 1'000'000;
constexpr double day = 86'400e6;
const std::vector<double> log_uniform{1e9, 1e11};

// Uniform in the logarithm over [1, e] s: P(R > x) = 1 - ln x, so that E[min(R, x)] is 1 for x = 1
// and x + x (1 - ln x) - 1 up to e, whose mean is e - 1.
TEST(ExpectedAway, RepairsWithinAndBeyond) {
  const double e = std::exp(1.0);
  const std::vector<double> quantiles{1e6, e * 1e6};
  EXPECT_NEAR(repair_within(quantiles, 0.5e6), 0.5e6, 1e-6);
  EXPECT_NEAR(repair_within(quantiles, 2e6), (2.0 + 2.0 * (1.0 - std::log(2.0)) - 1.0) * 1e6, 1e-3);
  EXPECT_NEAR(repair_within(quantiles, std::numeric_limits<double>::infinity()), (e - 1.0) * 1e6,
              1e-3);
  EXPECT_NEAR(repair_longer(quantiles, 2e6), 1.0 - std::log(2.0), 1e-12);
  EXPECT_EQ(repair_longer(quantiles, 0.5e6), 1.0);
  EXPECT_EQ(repair_longer(quantiles, 3e6), 0.0);
}

TEST(ExpectedAway, PoissonSums) {
  EXPECT_EQ(poisson_at_most(-1, 2.0), 0.0);
  EXPECT_NEAR(poisson_at_most(0, 2.0), std::exp(-2.0), 1e-15);
  EXPECT_NEAR(poisson_at_most(2, 2.0), 5.0 * std::exp(-2.0), 1e-15);
  EXPECT_NEAR(poisson_at_most(1'000'000, 2.0), 1.0, 1e-12);
  EXPECT_EQ(poisson_at_most(0, 0.0), 1.0);
  // Half of a large mean's lies below it: 1/2 + 2/3 of the term there.
  EXPECT_NEAR(poisson_at_most(10'000, 1e4), 0.5 + 2.0 / 3.0 / std::sqrt(2.0 * M_PI * 1e4), 1e-5);
}

// 8 s steps of 100 samples, a checkpoint every 5 minutes.
ReplicateSetup steps_of_days(double days) {
  ReplicateSetup setup;
  const auto steps = static_cast<std::int64_t>(days * 86400.0 / 8.0);
  setup.phases = {{steps * 100, {{8 * second, 100}}, {38}, {0}}};
  setup.tiers = {{second, 20 * second, 10 * second}};
  setup.causes = {{0, 600 * second, true, false, 0}, {60 * second, 60 * second, false, false, 0}};
  setup.restart = 200 * second;
  setup.regroup = 40 * second;
  setup.spares = unlimited_spares;
  return setup;
}

FailureDistribution failures(std::vector<double> per_day) {
  FailureDistribution distribution;
  distribution.per_day = std::move(per_day);
  distribution.repair_us = log_uniform;
  return distribution;
}

struct SampledShares {
  double days = 0.0, ettr = 0.0, goodput = 0.0;
};

// Shares of the time of all runs, without the wait for the last write.
SampledShares sampled_shares(const ReplicateSetup& setup, const FailureDistribution& distribution,
                             int replicates) {
  SampledShares sum;
  double all = 0.0, steps = 0.0, productive = 0.0;
  for (const RunTotals& run : run_replicates(setup, distribution, 1, replicates)) {
    const auto total = static_cast<double>(run.total() - setup.tiers.front().write);
    all += total;
    steps += run.ettr() * static_cast<double>(run.total());
    productive += static_cast<double>(run[RunTime::productive]);
  }
  return {all / day / replicates, steps / all, productive / all};
}

double work_of(const ReplicateSetup& setup) {
  const ReplicatePhase& phase = setup.phases.front();
  return static_cast<double>(phase.samples / phase.by_away[0].samples * phase.by_away[0].step);
}

// With a spare always at hand it is the known closed form, and so is an elastic job in which
// nothing leaves.
TEST(PolicyShares, AreTheClosedFormWithASpareAlways) {
  ReplicateSetup setup = steps_of_days(1000.0);
  const std::vector<double> per_day{6.0, 3.0};
  const double rate = 9.0 / 86400.0;
  const double found =
      (6.0 * untouched(rate, Seconds{0}, Seconds{600}) + 3.0 * untouched(rate, Seconds{60})) / 9.0;
  const double over = time_over_work({rate, found * untouched(rate, Seconds{210})},
                                     {Seconds{304}, Seconds{1}, Seconds{20}});
  EXPECT_NEAR(policy_shares(setup, per_day, log_uniform, work_of(setup)).ettr * over, 1.0, 2e-4);
  setup.elastic = true;
  setup.causes[0].replaces = false;
  EXPECT_NEAR(policy_shares(setup, per_day, log_uniform, work_of(setup)).ettr * over, 1.0, 1e-9);
}

// Spares that are used up: 6 failures a day that take a unit for 6 hours on average, so that 1.5
// are in repair. Within 0.1 % at 10,000 replicates. With two spares a job waits for a quarter of
// the time, and runs of 30 days are 0.17 % off: a run is as long as it takes, so that what it waits
// is counted from its end, which steps.
TEST(PolicyShares, OfSparesThatRunOutAreThoseOfReplicates) {
  for (const auto& [spares, days] : {std::pair{2, 90.0}, {4, 30.0}, {7, 30.0}}) {
    ReplicateSetup setup = steps_of_days(days);
    setup.spares = spares;
    const FailureDistribution distribution = failures({6.0, 3.0});
    const PolicyShares shares =
        policy_shares(setup, distribution.per_day, log_uniform, work_of(setup));
    const SampledShares sampled = sampled_shares(setup, distribution, 10'000);
    EXPECT_NEAR(sampled.ettr / shares.ettr, 1.0, 1e-3) << spares;
  }
}

// An elastic job of ten replicas, each of a unit.
TEST(PolicyShares, OfElasticJobsAreThoseOfReplicates) {
  for (const bool hold : {false, true})
    for (const int spares : {0, 2}) {
      ReplicateSetup setup = steps_of_days(30.0);
      setup.phases[0].by_away.clear();
      for (int away = 0; away < 9; ++away)
        setup.phases[0].by_away.push_back({8 * second - away * 50'000, 100 - 10 * away});
      setup.elastic = true;
      setup.units = setup.groups = 10;
      setup.replicas_hold_all = hold;
      setup.spares = spares;
      const FailureDistribution distribution = failures({4.0, 2.0});
      const PolicyShares shares =
          policy_shares(setup, distribution.per_day, log_uniform, work_of(setup));
      const SampledShares sampled = sampled_shares(setup, distribution, 10'000);
      EXPECT_NEAR(sampled.ettr / shares.ettr, 1.0, 1e-3) << hold << spares;
      EXPECT_NEAR(sampled.goodput / shares.goodput, 1.0, 1e-3) << hold << spares;
    }
}

// More spares never hurt, and so many that none is missing are a spare always.
TEST(PolicyShares, GrowWithSpares) {
  ReplicateSetup setup = steps_of_days(100.0);
  const std::vector<double> per_day{6.0, 3.0};
  double before = 0.0;
  for (int spares = 0; spares < 20; ++spares) {
    setup.spares = spares;
    const double now = policy_shares(setup, per_day, log_uniform, work_of(setup)).ettr;
    EXPECT_GE(now, before);
    before = now;
  }
  setup.spares = unlimited_spares;
  EXPECT_NEAR(before, policy_shares(setup, per_day, log_uniform, work_of(setup)).ettr, 1e-9);
}

}  // namespace
}  // namespace orrery::expected_away_test
