#include "sim/reliability/failure_draws.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace orrery::failure_draws_test {
namespace {

constexpr Micros day = 86'400'000'000;

FailureDistribution plain_failures(std::vector<double> per_day) {
  FailureDistribution distribution;
  distribution.per_day = std::move(per_day);
  distribution.repair_us = {1e9, 1e9};
  return distribution;
}

struct Moments {
  double mean, variance;
};

template <class Draw>
Moments moments(int count, Draw draw) {
  double sum = 0.0, squares = 0.0;
  for (int i = 0; i < count; ++i) {
    const double x = draw();
    sum += x, squares += x * x;
  }
  return {sum / count, squares / count - sum * sum / count / count};
}

// Of a Poisson process: as many in a time as its mean, with that variance; causes by their rates.
TEST(FailureDraws, ComeAsAPoissonProcess) {
  const FailureDistribution distribution = plain_failures({2.0, 6.0});
  std::uint64_t replicate = 0;
  double second = 0.0, all = 0.0;
  const Moments count = moments(4000, [&] {
    FailureDraws draws{distribution, 1, replicate++};
    double n = 0.0;
    Micros before = 0;
    for (Failure f = draws.next(); f.at < 5 * day; f = draws.next()) {
      EXPECT_GE(f.at, before);
      before = f.at;
      n += 1.0, all += 1.0, second += f.cause;
    }
    return n;
  });
  EXPECT_NEAR(count.mean, 40.0, 0.4);      // Standard error 0.1.
  EXPECT_NEAR(count.variance, 40.0, 3.6);  // 0.9.
  EXPECT_NEAR(second / all, 0.75, 0.005);
}

// A rate at which none comes in a hundred thousand years, which must not take as many months.
TEST(FailureDraws, HardlyEverCome) {
  FailureDistribution distribution = plain_failures({1e-20});
  distribution.month_deviation = 0.7;
  distribution.month = 29 * day;
  for (std::uint64_t replicate = 0; replicate < 100'000; ++replicate)
    ASSERT_GT((FailureDraws{distribution, 1, replicate}.next().at), 36'500'000 * day);
}

// Gamma(k) has mean and variance k, also below 1.
TEST(FailureDraws, GammaHasItsMoments) {
  Random random{3};
  for (const double shape : {0.3, 1.0, 1.9, 47.5, 419.5}) {
    const Moments of = moments(100'000, [&] { return draw_gamma(random, shape); });
    EXPECT_NEAR(of.mean / shape, 1.0, 0.02 / std::min(1.0, std::sqrt(shape)));
    EXPECT_NEAR(of.variance / shape, 1.0, 0.05 / std::min(1.0, std::sqrt(shape)));
  }
}

// Counts of months of a Gamma rate: variance = mean + (mean x deviation)^2.
TEST(FailureDraws, MonthsDiffer) {
  FailureDistribution distribution = plain_failures({10.0});
  distribution.month = 10 * day;
  distribution.month_deviation = 0.5;
  std::uint64_t replicate = 0;
  const Moments count = moments(4000, [&] {
    FailureDraws draws{distribution, 1, replicate++};
    double n = 0.0;
    for (Failure f = draws.next(); f.at < 20 * day; f = draws.next()) n += f.at >= 10 * day;
    return n;
  });
  EXPECT_NEAR(count.mean, 100.0, 4.0);  // Standard error 0.8.
  EXPECT_NEAR(count.variance, 100.0 + 2500.0, 300.0);
}

// Three batches of one for each of two: 5 failures in 4 batches, and counts whose variance over
// their mean is E[b^2] / E[b] = 7 / 5. What comes together is repaired together.
TEST(FailureDraws, ComeInBatches) {
  FailureDistribution distribution = plain_failures({10.0});
  distribution.batches = {3.0, 1.0};
  distribution.repair_us = {1e9, 1e11};
  std::uint64_t replicate = 0;
  double followers = 0.0, all = 0.0;
  const Moments count = moments(4000, [&] {
    FailureDraws draws{distribution, 1, replicate++};
    double n = 0.0;
    Failure before;
    for (Failure f = draws.next(); f.at < 4 * day; f = draws.next()) {
      EXPECT_EQ(f.follows, f.at == before.at);
      if (f.follows) {
        EXPECT_EQ(f.repair, before.repair);
      }
      before = f;
      n += 1.0, all += 1.0, followers += f.follows;
    }
    return n;
  });
  EXPECT_DOUBLE_EQ(distribution.mean_batch(), 1.25);
  EXPECT_NEAR(count.mean, 40.0, 0.5);
  EXPECT_NEAR(count.variance / count.mean, 1.4, 0.15);
  EXPECT_NEAR(followers / all, 0.2, 0.005);
}

// 100 events: a rate known to 10 %. A factor of 2: 5 % below a half and 5 % above 2.
TEST(FailureDraws, RatesAreAsUncertainAsTheyWereCounted) {
  FailureDistribution distribution = plain_failures({1.0});
  distribution.error.events = 100.0;
  std::uint64_t replicate = 0;
  const Moments counted = moments(20'000, [&] {
    return FailureDraws{distribution, 1, replicate++}.rate_factor();
  });
  EXPECT_NEAR(counted.mean, 1.005, 0.003);
  EXPECT_NEAR(counted.variance, 0.01005, 0.0005);
  distribution.error = {0.0, 2.0};
  int low = 0, high = 0;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const double factor = FailureDraws{distribution, 1, i}.rate_factor();
    low += factor<0.5, high += factor> 2.0;
  }
  EXPECT_NEAR(low, 1000, 110);
  EXPECT_NEAR(high, 1000, 110);
}

// Uniform in the logarithm between quantiles: the median of {1, 4, 16} is 4, the quarter 2.
TEST(FailureDraws, RepairsFollowTheirQuantiles) {
  const std::vector<double> quantiles{1e6, 4e6, 16e6};
  EXPECT_NEAR(static_cast<double>(repair_at(quantiles, 0.0)), 1e6, 1.0);
  EXPECT_NEAR(static_cast<double>(repair_at(quantiles, 0.25)), 2e6, 1.0);
  EXPECT_NEAR(static_cast<double>(repair_at(quantiles, 0.5)), 4e6, 1.0);
  EXPECT_NEAR(static_cast<double>(repair_at(quantiles, 0.75)), 8e6, 1.0);
}

// The failures of a replicate do not depend on who asks, and half the rate doubles their times.
TEST(FailureDraws, AreCommonToAllPolicies) {
  const FailureDistribution distribution = plain_failures({3.0});
  const FailureDistribution half = plain_failures({1.5});
  FailureDraws one{distribution, 7, 5}, other{distribution, 7, 5}, rarer{half, 7, 5};
  for (int i = 0; i < 100; ++i) {
    const Failure f = one.next();
    EXPECT_EQ(f.at, other.next().at);
    EXPECT_NEAR(static_cast<double>(rarer.next().at), 2.0 * static_cast<double>(f.at), 300.0);
  }
}

// The same on every machine: nothing but integers and IEEE's operations takes part.
TEST(FailureDraws, AreTheSameEverywhere) {
  FailureDistribution distribution = plain_failures({3.0});
  distribution.month = 29 * day;
  distribution.month_deviation = 0.73;
  distribution.error.factor = 1.7;
  distribution.repair_us = {8.64e6, 1e9, 1e12};
  FailureDraws draws{distribution, 1, 0};
  const Failure first = draws.next(), second = draws.next();
  EXPECT_EQ(first.at, 23271602724);
  EXPECT_EQ(second.at, 142545121235);
  EXPECT_EQ(second.repair, 31685073);
}

}  // namespace
}  // namespace orrery::failure_draws_test
