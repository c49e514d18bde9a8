#include "sim/kernels/neighbours.hpp"

#include <gtest/gtest.h>

namespace orrery::neighbours_test {
namespace {

TEST(Neighbours, WithoutPointsAnswersZero) { EXPECT_EQ(Neighbours<2>{}.at({1.0, 2.0}), 0.0); }

// One point of value 1 at distance d: w / (w + 0.5) with w = 1 / (d^2 + 0.05).
TEST(Neighbours, OnePointFadesWithDistance) {
  Neighbours<1> one;
  one.add({0.0}, 1.0);
  EXPECT_DOUBLE_EQ(one.at({0.0}), 20.0 / 20.5);            // w = 1 / 0.05
  EXPECT_DOUBLE_EQ(one.at({1.0}), 1.0 / (1.0 + 0.525));    // w = 1 / 1.05
  EXPECT_DOUBLE_EQ(one.at({10.0}), 1.0 / (1.0 + 50.025));  // w = 1 / 100.05
}

TEST(Neighbours, APointCanBeLeftOut) {
  Neighbours<1> two;
  two.add({0.0}, 5.0);
  two.add({1.0}, 1.0);
  EXPECT_DOUBLE_EQ(two.at({0.0}, 0), 1.0 / (1.0 + 0.525));  // Only the one at distance 1 is left.
  EXPECT_EQ(two.value(0), 5.0);
}

// Nine points at one distance would count alike; the eighth nearest still counts, the ninth does
// not. Values 1 for the eight at distance 1 and 1000 for the one at distance 1.1, in both orders.
TEST(Neighbours, OnlyTheEightNearestCount) {
  const double expected = (8 / 1.05) / (8 / 1.05 + 0.5);
  for (const bool far_first : {false, true}) {
    Neighbours<1> nine;
    if (far_first) nine.add({1.1}, 1000.0);
    for (int i = 0; i < 8; ++i) nine.add({i % 2 ? 1.0 : -1.0}, 1.0);
    if (!far_first) nine.add({1.1}, 1000.0);
    EXPECT_DOUBLE_EQ(nine.at({0.0}), expected);
  }
}

}  // namespace
}  // namespace orrery::neighbours_test
