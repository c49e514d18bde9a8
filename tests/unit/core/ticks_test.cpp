#include "sim/core/ticks.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace orrery::ticks_test {
namespace {

constexpr Seconds tick = Ticks{1}.seconds();

Ticks ticks(double count) { return Ticks::nearest(count * tick); }

// 2^-42 s and multiples of it, halves to the even one.
TEST(Ticks, AreWhole) {
  for (std::int64_t count : {std::int64_t{0}, std::int64_t{1}, std::int64_t{3},
                             std::int64_t{1000000}, (std::int64_t{1} << 40) + 1}) {
    const auto whole = static_cast<double>(count);
    EXPECT_EQ(ticks(whole), Ticks{count});
    EXPECT_EQ(ticks(whole + 0.4), Ticks{count});
    EXPECT_EQ(ticks(whole + 0.6), Ticks{count + 1});
  }
  EXPECT_EQ(ticks(1.5), Ticks{2});
  EXPECT_EQ(ticks(2.5), Ticks{2});
}

TEST(Ticks, AreNeverFarFromTheirTime) {
  for (double time = 1e-15; time < 2e6; time *= 1.1) {
    const double there_and_back = Ticks::nearest(Seconds{time}).seconds().si();
    // Above 2,048 s a double's own last bit is more than a tick.
    EXPECT_LE(std::abs(there_and_back - time), tick.si() / 2.0) << time;
  }
}

// A tenth of a second added ten thousand times: seconds round, whole ticks do not. Nor do they
// twenty days later, where a double counts by a thousand ticks.
TEST(Ticks, AddUpWithoutRounding) {
  const Ticks tenth = Ticks::nearest(Seconds{0.1});
  Ticks sum;
  double seconds = 0.0;
  for (int i = 0; i < 10000; ++i) sum = sum + tenth, seconds += 0.1;
  EXPECT_EQ(sum, Ticks{10000 * tenth.count()});
  EXPECT_NE(seconds, 10000.0 * 0.1);
  for (double begin = 1.0; begin < 20.0 * 86400.0; begin *= 1.5) {
    const Ticks began = Ticks::nearest(Seconds{begin});
    EXPECT_EQ((began + tenth) - began, tenth);
  }
}

// 2^63 ticks are 2^21 s: 24 days and a quarter.
TEST(Ticks, EndAfterTwentyFourDays) {
  const double day = 86400.0;
  EXPECT_LT(Ticks::nearest(Seconds{24.2 * day}), Ticks::end());
  EXPECT_EQ(Ticks::nearest(Seconds{24.3 * day}), Ticks::end());
  EXPECT_EQ(Ticks::nearest(Seconds{std::numeric_limits<double>::infinity()}), Ticks::end());
  EXPECT_EQ(Ticks::nearest(Seconds{20.0 * day}) + Ticks::nearest(Seconds{5.0 * day}), Ticks::end());
  EXPECT_EQ(Ticks::end() + Ticks{1}, Ticks::end());
  EXPECT_LT(Ticks::end(), Ticks::never());
}

}  // namespace
}  // namespace orrery::ticks_test
