#include <gtest/gtest.h>

#include "sim/search/serving_bound.hpp"

namespace orrery::convex_floor_test {
namespace {

TEST(ConvexFloor, OfAMemoryBoundAndAComputeBoundPartIsTheLongerOfBoth) {
  // f(x) = max(10, x): 4 calls of 20 in all take at least 4 x 10, of 100 in all at least 100.
  std::vector<TimePoint> points;
  for (int x = 1; x <= 64; ++x) points.push_back({x, Seconds{std::max(10.0, 1.0 * x)}});
  const ConvexFloor floor{points};
  EXPECT_DOUBLE_EQ(floor.sum(4, 20).si(), 40.0);
  EXPECT_DOUBLE_EQ(floor.sum(4, 100).si(), 100.0);
}

TEST(ConvexFloor, OfALineIsTheLine) {
  const ConvexFloor floor{{{1, Seconds{5.0}}, {2, Seconds{7.0}}, {10, Seconds{23.0}}}};
  EXPECT_DOUBLE_EQ(floor.sum(3, 12).si(), 3 * 3.0 + 2.0 * 12);
}

// All ways to divide up to 12 among up to 4 calls of a function with a dent.
TEST(ConvexFloor, NoDivisionOfTheAmountFallsBelowIt) {
  const std::vector<double> f{9, 8, 8.5, 12, 11, 11, 20, 26, 25, 29, 40, 38};
  std::vector<TimePoint> points;
  for (std::size_t x = 0; x < f.size(); ++x)
    points.push_back({static_cast<std::int64_t>(x) + 1, Seconds{f[x]}});
  const ConvexFloor floor{points};
  const auto of = [&](int x) { return f[static_cast<std::size_t>(x - 1)]; };
  for (int a = 1; a <= 12; ++a)
    for (int b = 0; b <= 12; ++b)
      for (int c = 0; c <= 12; ++c) {
        const double sum = of(a) + (b > 0 ? of(b) : 0.0) + (c > 0 ? of(c) : 0.0);
        const int calls = 1 + (b > 0) + (c > 0);
        EXPECT_LE(floor.sum(calls, a + b + c).si(), sum + 1e-12) << a << " " << b << " " << c;
      }
}

}  // namespace
}  // namespace orrery::convex_floor_test
