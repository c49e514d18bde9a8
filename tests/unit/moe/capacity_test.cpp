#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "sim/moe/router.hpp"

namespace orrery::capacity_test {
namespace {

TEST(Capacity, IsMegatrons) {
  EXPECT_EQ(expert_capacity(1.0, 4096, 2, 8), 1024);
  EXPECT_EQ(expert_capacity(1.25, 4096, 2, 8), 1280);
  EXPECT_EQ(expert_capacity(1.0, 10, 1, 3), 4);  // ceil(10/3)
}

// All 2^n outcomes of n trials, each with its probability.
TEST(Capacity, ExcessIsTheMeanOverAllOutcomes) {
  for (int n = 1; n <= 10; ++n)
    for (const double p : {0.0, 0.03, 0.25, 0.5, 0.9, 1.0})
      for (int capacity = 0; capacity <= n; ++capacity) {
        double mean = 0.0;
        for (unsigned outcome = 0; outcome < 1u << n; ++outcome) {
          const int hits = std::popcount(outcome);
          mean += std::pow(p, hits) * std::pow(1 - p, n - hits) * std::max(0, hits - capacity);
        }
        EXPECT_NEAR(binomial_excess(n, p, capacity), mean, 1e-12) << n << " " << p;
      }
}

// Without capacity everything is excess; for many tokens a normal's tail: s phi(0) at the mean.
TEST(Capacity, ExcessOfManyTokens) {
  EXPECT_NEAR(binomial_excess(100000, 0.3, 0), 30000.0, 1e-6);
  const double deviation = std::sqrt(100000 * 0.3 * 0.7);
  EXPECT_NEAR(binomial_excess(100000, 0.3, 30000), deviation / std::sqrt(2 * M_PI), 0.05);
}

}  // namespace
}  // namespace orrery::capacity_test
