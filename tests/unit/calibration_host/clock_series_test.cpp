#include "calibration/host/clock_series.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery::calibration::clock_series_test {
namespace {

// A GPU whose power limit acts as `exp(-t / tau)`: 1,000 us a run when cool, 1,000 / 0.87 in the
// end. In the first second alone, all but 5 % of which lies behind tau, the median run is the
// steady one: what a record of whole seconds took for a clock that does not fall.
ClockSeries power_limited(double tau_s, double length_s) {
  ClockSeries series;
  while (series.length_s() < length_s) {
    const double fall = 1.0 - std::exp(-series.length_s() / tau_s);
    series.add(1000.0 * (1.0 + (1.0 / 0.87 - 1.0) * fall), 1);
    series.note({1.98e9 / (1.0 + (1.0 / 0.87 - 1.0) * fall), 700.0, 60.0,
                 series.length_s() > tau_s ? 4u : 0u});
  }
  return series;
}

// Of the burst's twenty windows the middle one begins after 10 ms: with tau = 1 s it is
// 1000 (1 + 0.1494 (1 - e^-0.01)) = 1001.5 us.
TEST(ClockSeries, TheBurstIsBeforeThePowerLimitActs) {
  const ClockSeries series = power_limited(1.0, 20.0);
  EXPECT_NEAR(series.burst_us(), 1001.5, 0.2);
  EXPECT_NEAR(series.sustained().median_us, 1000.0 / 0.87, 0.01);
  EXPECT_LT(std::abs(series.sustained().drift), 1e-4);
}

TEST(ClockSeries, AConstantClockIsConstant) {
  ClockSeries series;
  for (int i = 0; i < 20'480; ++i) series.add(0x1p-10 * 1e6, 1);  // Sums are exact.
  EXPECT_EQ(series.burst_us(), 0x1p-10 * 1e6);
  EXPECT_EQ(series.sustained().median_us, 0x1p-10 * 1e6);
  EXPECT_EQ(series.length_s(), 20.0);
  EXPECT_EQ(series.sustained().samples, 5 * 1024);
}

// Runs shorter than a window share it; one longer than all of the burst is the burst.
TEST(ClockSeries, RunsOfAnyLength) {
  ClockSeries small, large;
  for (int i = 0; i < 100; ++i) small.add(1000.0, 50);
  for (int i = 0; i < 4; ++i) large.add(3e6 + i, 1);
  EXPECT_EQ(small.burst_us(), 20.0);
  EXPECT_EQ(small.sustained().samples, 50);  // 0.1 s: its later half.
  EXPECT_EQ(large.burst_us(), 3e6);
  EXPECT_EQ(large.sustained().median_us, 3e6 + 3);  // 12 s: what began in the last five.
}

// 20 windows of the burst, then ten a decade: from 20 ms to 20 s are three decades.
TEST(ClockSeries, FewPointsSuffice) {
  const std::vector<SeriesPoint> points = power_limited(0.2, 20.0).points();
  EXPECT_GE(points.size(), 48u);
  EXPECT_LE(points.size(), 52u);
  EXPECT_NEAR(points.front().at_s, 1e-3, 1e-6);
  EXPECT_NEAR(points.back().at_s, 20.0, 2e-3);
  for (std::size_t i = 1; i < points.size(); ++i) {
    EXPECT_GT(points[i].at_s, points[i - 1].at_s);
    EXPECT_GE(points[i].median_us, points[i - 1].median_us);
  }
  EXPECT_EQ(points.front().state.held_by, 0u);
  EXPECT_EQ(points.back().state.held_by, 4u);
}

TEST(GpuState, SaysWhatHoldsTheClock) {
  EXPECT_EQ(held_by_text(0), "nothing");
  EXPECT_EQ(held_by_text(1), "nothing");  // Idle.
  EXPECT_EQ(held_by_text(4), "power cap");
  EXPECT_EQ(held_by_text(0x64), "power cap, thermal, hardware thermal");
  EXPECT_EQ(held_by_text(1ull << 40), "bit 40");
}

}  // namespace
}  // namespace orrery::calibration::clock_series_test
