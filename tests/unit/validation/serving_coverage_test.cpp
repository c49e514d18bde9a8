#include <gtest/gtest.h>

#include <cmath>

#include "sim/serving/serving_error.hpp"
#include "sim/validation/coverage.hpp"

namespace orrery::serving_coverage_test {
namespace {

// `count` cases of a publication whose residuals are step, 2 step, ...: too slow and too fast by
// turns, in ranges of 0.1.
void add(ValidationReport& report, const char* publication, int count, double step,
         const char* quantity = "tpot_ms") {
  for (int i = 1; i <= count; ++i) {
    Comparison one{"case", quantity, std::exp((i % 2 == 0 ? step : -step) * i), 1.0, {}};
    one.serving_error = 0.1000001;
    one.publication = publication;
    report.comparisons.push_back(one);
  }
}

// Of a hundred cases of one publication ninety are within 0.90.
TEST(ServingCoverage, HoldsTheVotesOfOnePublication) {
  ValidationReport report;
  add(report, "a", 100, 0.01);
  const auto list = serving_coverage_of({report});
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].figure, "tpot");
  EXPECT_EQ(list[0].publications, 1);
  EXPECT_EQ(list[0].inside, 10);
  EXPECT_NEAR(list[0].in_range, 0.1, 1e-12);
  EXPECT_NEAR(list[0].error, 0.90, 1e-12);
  EXPECT_TRUE(std::isnan(list[0].left_out_in_range));
}

// Two publications, of 100 and of 10 cases: half of the votes lie below 0.1, all of the second, so
// that nine in ten votes need 80 of 100 cases of the first. The second alone gives 0.09, which
// holds nine of the first, and the first holds all of the second.
TEST(ServingCoverage, PublicationsHaveOneVoteEach) {
  ValidationReport one, other;
  add(one, "a", 100, 0.01);
  add(other, "b", 10, 0.01);
  const auto list = serving_coverage_of({one, other});
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].publications, 2);
  EXPECT_EQ(list[0].cases, 110);
  EXPECT_EQ(list[0].inside, 20);
  EXPECT_NEAR(list[0].in_range, 0.5 * (0.1 + 1.0), 1e-12);
  EXPECT_NEAR(list[0].error, 0.80, 1e-12);
  EXPECT_NEAR(list[0].left_out_in_range, 0.5 * (0.09 + 1.0), 1e-12);
}

TEST(ServingCoverage, OnlyFiguresWithARangeCount) {
  ValidationReport report;
  add(report, "a", 20, 0.01, "e2e_p99_ms");
  EXPECT_TRUE(serving_coverage_of({report}).empty());
}

TEST(ServingError, RangesHoldTheirPrediction) {
  for (const ServingFigure figure :
       {ServingFigure::ttft, ServingFigure::tpot, ServingFigure::throughput}) {
    const Range range = serving_range(20.0, figure);
    EXPECT_NEAR(std::sqrt(range.low * range.high), 20.0, 1e-12);
    EXPECT_LT(range.low, 20.0);
  }
}

}  // namespace
}  // namespace orrery::serving_coverage_test
