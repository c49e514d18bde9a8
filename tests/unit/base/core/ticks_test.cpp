#include "sim/base/core/ticks.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery {
namespace {

// 2^-42 s and multiples of it, halves to the even one.
TEST(Ticks, AreWhole) {
  for (double count : {0.0, 1.0, 3.0, 1e6, 0x1p40 + 1.0}) {
    EXPECT_EQ(in_ticks(count * tick), count * tick);
    EXPECT_EQ(in_ticks((count + 0.4) * tick), count * tick);
    EXPECT_EQ(in_ticks((count + 0.6) * tick), (count + 1.0) * tick);
  }
  EXPECT_EQ(in_ticks(1.5 * tick), 2.0 * tick);
  EXPECT_EQ(in_ticks(2.5 * tick), 2.0 * tick);
}

TEST(Ticks, AreNeverFarFromWhatTheyStandFor) {
  for (double time = 1e-15; time < 500.0; time *= 1.1)
    EXPECT_LE(std::abs(in_ticks(Seconds{time}).si() - time), tick.si() / 2.0);
}

// A tenth of a second added ten thousand times: seconds round, whole ticks do not.
TEST(Ticks, AddUpWithoutRounding) {
  const Seconds tenth = in_ticks(Seconds{0.1});
  Seconds sum;
  double seconds = 0.0;
  for (int i = 0; i < 10000; ++i) sum += tenth, seconds += 0.1;
  EXPECT_EQ(sum, 10000.0 * tenth);
  EXPECT_NE(seconds, 10000.0 * 0.1);
  for (int begin = 1; begin < 2000; begin += 7)
    EXPECT_EQ((Seconds{static_cast<double>(begin)} + tenth) - Seconds{static_cast<double>(begin)},
              tenth);
}

}  // namespace
}  // namespace orrery
