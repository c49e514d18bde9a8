#include "sim/core/random.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace orrery::random_test {
namespace {

TEST(Random, KeysSeparateStreams) {
  EXPECT_EQ(Random({1, 2}).next(), Random({1, 2}).next());
  EXPECT_NE(Random({1, 2}).next(), Random({2, 1}).next());
  EXPECT_NE(Random({1}).next(), Random({1, 0}).next());
}

TEST(Random, NormalsHaveTheirMoments) {
  Random random{7};
  constexpr int n = 200000;
  double sum = 0.0, squares = 0.0, fourth = 0.0;
  int beyond_two = 0;
  for (int i = 0; i < n; ++i) {
    const double x = random.normal();
    sum += x, squares += x * x, fourth += x * x * x * x;
    beyond_two += std::abs(x) > 2.0;
  }
  // Standard errors: 1/sqrt(n) = 0.0022, sqrt(2/n) = 0.0032, sqrt(96/n) = 0.022.
  EXPECT_NEAR(sum / n, 0.0, 0.009);
  EXPECT_NEAR(squares / n, 1.0, 0.013);
  EXPECT_NEAR(fourth / n, 3.0 - 2.0 / 256, 0.09);  // A binomial of 256 bits.
  EXPECT_NEAR(beyond_two / double{n}, 0.0455, 0.002);
}

TEST(Random, BinomialsHaveTheirMoments) {
  struct Case {
    double n, p;
  };
  for (const auto& [n, p] : std::vector<Case>{{1, 0.5},
                                              {10, 0.1},
                                              {40, 0.9},
                                              {1000, 0.01},
                                              {1000, 0.5},
                                              {1e6, 0.031},
                                              {5, 0},
                                              {5, 1}}) {
    Random random{11};
    constexpr int draws = 20000;
    double sum = 0.0, squares = 0.0;
    for (int i = 0; i < draws; ++i) {
      const double x = random.binomial(n, p);
      ASSERT_GE(x, 0.0);
      ASSERT_LE(x, n);
      ASSERT_EQ(x, std::floor(x));
      sum += x;
      squares += (x - n * p) * (x - n * p);
    }
    const double variance = n * p * (1 - p);
    EXPECT_NEAR(sum / draws, n * p, 4 * std::sqrt(variance / draws) + 1e-12) << n << " " << p;
    EXPECT_NEAR(squares / draws, variance, 0.06 * variance + 1e-12) << n << " " << p;
  }
}

// BINV term by term: of 3 trials with p = 1/2 each outcome has its exact chance.
TEST(Random, SmallBinomialsAreExact) {
  Random random{3};
  std::vector<int> seen(4, 0);
  constexpr int draws = 80000;
  for (int i = 0; i < draws; ++i) ++seen[static_cast<std::size_t>(random.binomial(3, 0.5))];
  for (const auto& [outcome, chance] : {std::pair{0, 0.125}, {1, 0.375}, {2, 0.375}, {3, 0.125}})
    EXPECT_NEAR(seen[static_cast<std::size_t>(outcome)] / double{draws}, chance, 0.007);
}

}  // namespace
}  // namespace orrery::random_test
