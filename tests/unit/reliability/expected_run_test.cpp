#include "sim/reliability/expected_run.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery::expected_run_test {
namespace {

// W0(-0.2) and W0(-0.1) as tables of the function have them (Corless et al., 1996).
TEST(LambertW, HasItsKnownValues) {
  EXPECT_NEAR(one_plus_lambert_w0(-1.0 - std::log(0.2)), 1.0 - 0.2591711018190738, 1e-14);
  EXPECT_NEAR(one_plus_lambert_w0(-1.0 - std::log(0.1)), 1.0 - 0.1118325591589630, 1e-14);
  EXPECT_EQ(one_plus_lambert_w0(0.0), 0.0);
}

TEST(LambertW, SolvesItsEquation) {
  for (double s = 1e-8; s < 100.0; s *= 1.3) {
    const double u = one_plus_lambert_w0(s);
    EXPECT_GT(u, 0.0);
    EXPECT_LE(u, 1.0);
    EXPECT_NEAR((u - 1.0) * std::exp(u), -std::exp(-s), 1e-12) << s;
    if (s < 1e-4) {
      EXPECT_NEAR(u / std::sqrt(2.0 * s), 1.0, std::sqrt(s));
    }
  }
}

// (exp(0.5) - 1) exp(0.25) / 0.5: work 400 s, stall 100 s, recovery 250 s, a failure each 1,000 s.
TEST(TimeOverWork, IsDalysFormulaWhereNothingIsAsynchronous) {
  const Interruptions interruptions{1e-3, untouched(1e-3, Seconds{250})};
  const CheckpointCycle cycle{Seconds{400}, Seconds{100}, Seconds{}};
  EXPECT_NEAR(time_over_work(interruptions, cycle),
              (std::exp(0.5) - 1.0) * std::exp(0.25) * 1000.0 / 400.0, 1e-12);
  EXPECT_NEAR(time_over_work_safe_recovery(1e-3, Seconds{250}, cycle),
              (std::exp(0.5) - 1.0) * 1250.0 / 400.0, 1e-12);
}

// Without failures a cycle takes its work and its stall.
TEST(TimeOverWork, GoesToThePlainCycleAsFailuresCease) {
  const CheckpointCycle cycle{Seconds{400}, Seconds{100}, Seconds{50}};
  EXPECT_DOUBLE_EQ(time_over_work({0.0, 1.0}, cycle), 1.25);
  EXPECT_NEAR(time_over_work({1e-12, 1.0}, cycle), 1.25, 1e-8);
}

// To first order in the rate: 1 + d / tau + L ((tau + d) / 2 + a + D)(1 + d / tau).
TEST(TimeOverWork, LosesHalfACycleTheWriteAndTheRecovery) {
  const double rate = 1e-8;
  const Seconds recovery{300};
  const CheckpointCycle cycle{Seconds{400}, Seconds{100}, Seconds{50}};
  const double lost = (time_over_work({rate, untouched(rate, recovery)}, cycle) - 1.25) / 1.25;
  EXPECT_NEAR(lost / (rate * (250.0 + 50.0 + 300.0)), 1.0, 1e-5);
}

// The mean of exp(-x) over [0, 1] is 1 - 1/e; a range without width is a fixed time.
TEST(Untouched, IsAMeanOverItsRange) {
  EXPECT_NEAR(untouched(1.0, Seconds{0}, Seconds{1}), 1.0 - std::exp(-1.0), 1e-15);
  EXPECT_DOUBLE_EQ(untouched(2.0, Seconds{3}, Seconds{3}), std::exp(-6.0));
}

TEST(BestWork, CostsTheLeast) {
  for (const double mttf : {1080.0, 10800.0, 1e6})
    for (const double stall : {0.1, 10.0, 60.0, 600.0}) {
      const double rate = 1.0 / mttf;
      const double best = best_work(rate, Seconds{stall}).si();
      const auto cost = [&](double work) {
        return time_over_work({rate, 1.0}, {Seconds{work}, Seconds{stall}, Seconds{}});
      };
      for (const double factor : {0.5, 0.9, 0.99, 1.01, 1.1, 2.0})
        EXPECT_LT(cost(best), cost(best * factor)) << mttf << " " << stall << " " << factor;
    }
}

// tau = sqrt(2 d / L): 3 s and 3 h give 254.6 s; the exact optimum is one stall less / 3 and so on.
TEST(BestWork, HasYoungsAndDalysAsItsSeries) {
  const double rate = 1.0 / 10800.0;
  EXPECT_NEAR(young_work(rate, Seconds{3}).si(), std::sqrt(2.0 * 3.0 * 10800.0), 1e-9);
  // Orders of x = sqrt(d L / 2): Young is off by x, Daly by x^3.
  for (const double stall : {1e-4, 1e-2, 1.0, 30.0}) {
    const double best = best_work(rate, Seconds{stall}).si();
    const double x = std::sqrt(stall * rate / 2.0);
    EXPECT_NEAR(young_work(rate, Seconds{stall}).si() / best, 1.0, x);
    EXPECT_NEAR(daly_work(rate, Seconds{stall}).si() / best, 1.0, x * x * x + 1e-9);
  }
  EXPECT_EQ(daly_work(rate, Seconds{30'000}).si(), 10800.0);
}

// RSC-1's 6.50 failures a 1,000 node-days on 16,000 GPUs, a checkpoint an hour, 5 minutes to
// recover: 1 - L (300 + 1800) with L = 13 / 86400, and (exp(3600 L) - 1) exp(300 L) / (3600 L).
TEST(LinearEttr, IsTheFormulaOfRsc) {
  const double rate = 13.0 / 86400.0;
  const CheckpointCycle hour{Seconds{3600}, Seconds{}, Seconds{}};
  EXPECT_NEAR(linear_ettr(rate, Seconds{300}, hour), 1.0 - 13.0 * 2100.0 / 86400.0, 1e-12);
  EXPECT_NEAR(1.0 / time_over_work({rate, untouched(rate, Seconds{300})}, hour), 0.7202, 1e-4);
}

}  // namespace
}  // namespace orrery::expected_run_test
