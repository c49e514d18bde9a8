#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/core/random.hpp"
#include "sim/serving/replay_counts.hpp"

namespace orrery::latency_histogram_test {
namespace {

TEST(LatencyHistogram, HasPercentilesWithinTheWidthOfABucket) {
  Random random{3};
  LatencyHistogram histogram;
  std::vector<double> times;
  for (int i = 0; i < 5001; ++i) {
    times.push_back(1e-3 * std::exp(3.0 * random.normal()));
    histogram.add(Seconds{times.back()});
  }
  std::sort(times.begin(), times.end());
  for (const double share : {0.01, 0.1, 0.5, 0.9, 0.99}) {
    const double exact = times[static_cast<std::size_t>(share * 5000.0)];
    EXPECT_NEAR(histogram.percentile(share).si() / exact, 1.0, 1.0 / 128) << share;
  }
  EXPECT_EQ(histogram.percentile(0.0).si(), times.front());
  EXPECT_EQ(histogram.percentile(1.0).si(), times.back());
  EXPECT_EQ(histogram.most().si(), times.back());
}

// numpy.percentile([1, 2, 10], 99) is 9.84: between the second and the third.
TEST(LatencyHistogram, LiesBetweenTwoTimesInProportion) {
  LatencyHistogram histogram;
  for (const double time : {1.0, 10.0, 2.0}) histogram.add(Seconds{time});
  EXPECT_NEAR(histogram.percentile(0.99).si(), 9.84, 9.84 / 128);
  EXPECT_NEAR(histogram.percentile(0.25).si(), 1.5, 1.5 / 128);
}

TEST(LatencyHistogram, OfNothingAndOfZeroSaysZero) {
  LatencyHistogram histogram;
  EXPECT_EQ(histogram.percentile(0.5).si(), 0.0);
  histogram.add(Seconds{});
  EXPECT_EQ(histogram.percentile(0.5).si(), 0.0);
  EXPECT_EQ(histogram.count(), 1u);
}

// What a range adds is what its times add one by one.
TEST(LatencyHistogram, AddsARangeAsItsTimes) {
  Random random{4};
  for (int round = 0; round < 2000; ++round) {
    const double first = 1e-3 * (1.0 + random.unit());
    const double growth = round % 3 == 0 ? 0.0 : first * random.unit() * 0.01;
    const std::uint64_t each = 1 + random.below(300), count = 1 + random.below(5);
    LatencyHistogram range, apart;
    range.add_range(Seconds{first}, Seconds{growth}, each, count);
    for (std::uint64_t i = 0; i < each; ++i)
      apart.add(Seconds{first + static_cast<double>(i) * growth}, count);
    ASSERT_EQ(range.count(), apart.count());
    EXPECT_NEAR(range.sum() / apart.sum(), 1.0, 1e-12);
    for (const double share : {0.0, 0.25, 0.5, 0.75, 1.0})
      ASSERT_NEAR(range.percentile(share) / apart.percentile(share), 1.0, 1e-9) << round;
  }
}

TEST(LatencyHistogram, ComesBackFromItsBytes) {
  LatencyHistogram histogram, sum;
  histogram.add_range(Seconds{1e-3}, Seconds{1e-6}, 1000, 7);
  histogram.add(Seconds{12.0});
  sum.add(LatencyHistogram::of_bytes(histogram.bytes()));
  EXPECT_EQ(sum.bytes(), histogram.bytes());
}

}  // namespace
}  // namespace orrery::latency_histogram_test
