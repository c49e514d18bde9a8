#include "calibration/host/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace orrery::calibration::statistics_test {
namespace {

std::vector<double> steps(int count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

// 1, 2, ..., 11: a tenth of the way from the first to the last of 11 values is the second. Counting
// shares as k / n instead gives 1.1, as (k - 1/2) / n 1.6.
TEST(Quantile, CountsSharesBetweenTheExtremes) {
  EXPECT_DOUBLE_EQ(quantile(steps(11), 0.1), 2.0);
  EXPECT_DOUBLE_EQ(quantile(steps(11), 0.9), 10.0);
  EXPECT_DOUBLE_EQ(quantile(steps(4), 0.5), 2.5);
  EXPECT_DOUBLE_EQ(quantile(steps(1), 0.9), 1.0);
  EXPECT_DOUBLE_EQ(quantile(steps(7), 1.0), 7.0);
}

// The probability that both sides miss, in closed form for all small sample sizes: summing rows of
// Pascal's triangle, the interval must miss with at most 5 % and one rank further in with more.
TEST(MedianInterval, IsTheTightestThatCovers95Percent) {
  std::vector<double> row{1.0};  // C(n, 0..n)
  for (int n = 1; n <= 60; ++n) {
    std::vector<double> next(row.size() + 1, 1.0);
    for (std::size_t i = 1; i < row.size(); ++i) next[i] = row[i - 1] + row[i];
    row = next;
    const MedianInterval interval = median_interval(n);
    const auto missed = [&](int low) {  // Both sides; fewer than `low` heads of n.
      return 2.0 * std::accumulate(row.begin(), row.begin() + low, 0.0) / std::pow(2.0, n);
    };
    SCOPED_TRACE(n);
    if (n < 6) {  // 2 / 2^5 = 6.25 %
      EXPECT_EQ(interval.low, 0);
      continue;
    }
    EXPECT_EQ(interval.high, n + 1 - interval.low);
    EXPECT_LE(missed(interval.low), 0.05);
    EXPECT_GT(missed(interval.low + 1), 0.05);
  }
}

TEST(MedianInterval, MeetsItsApproximation) {
  for (const int n : {999, 1000, 1001, 1002}) EXPECT_NEAR(median_interval(n).low, 469, 1) << n;
}

// Ten samples: the interval runs from the 2nd to the 9th, (9 - 2) / 2 over the median 5.5.
TEST(Summary, NoiseIsHalfTheMediansInterval) {
  const TimingSummary summary = summarize(steps(10));
  EXPECT_DOUBLE_EQ(summary.median_us, 5.5);
  EXPECT_DOUBLE_EQ(summary.noise, 3.5 / 5.5);
  EXPECT_EQ(summary.samples, 10);
}

// The mean of these is 109, their standard deviation 4.9 times the median; the median does not
// care.
TEST(Summary, OneOutlierChangesNothing) {
  std::vector<double> times(10, 10.0);
  times[3] = 1000.0;
  const TimingSummary summary = summarize(times);
  EXPECT_DOUBLE_EQ(summary.median_us, 10.0);
  EXPECT_DOUBLE_EQ(summary.noise, 0.0);
  EXPECT_DOUBLE_EQ(summary.drift, 0.0);
}

TEST(Summary, FewSamplesAreNoisy) {
  EXPECT_DOUBLE_EQ(summarize({5.0}).noise, 1.0);
  EXPECT_DOUBLE_EQ(summarize({4.0, 5.0, 6.0}).noise, 0.4);
}

// The later half runs 10 % slower: order matters to the drift, and to nothing else.
TEST(Summary, DriftIsTheLaterHalfAgainstTheEarlier) {
  EXPECT_NEAR(summarize({10, 10, 10, 11, 11, 11}).drift, 0.1, 1e-12);
  EXPECT_NEAR(summarize({11, 11, 11, 10, 10, 10}).drift, 10.0 / 11.0 - 1.0, 1e-12);
  EXPECT_NEAR(summarize({10, 11, 10, 11, 10, 11, 10, 11}).drift, 0.0, 1e-12);
}

}  // namespace
}  // namespace orrery::calibration::statistics_test
