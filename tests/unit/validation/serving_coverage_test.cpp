#include <gtest/gtest.h>

#include <cmath>

#include "sim/serving/serving_error.hpp"
#include "sim/validation/coverage.hpp"

namespace orrery::serving_coverage_test {
namespace {

// `count` cases whose residuals are step, 2 step, ...: too slow and too fast by turns.
ValidationReport file_of(const char* quantity, int count, double step, double error) {
  ValidationReport report;
  for (int i = 1; i <= count; ++i) {
    const double residual = (i % 2 == 0 ? step : -step) * i;
    Comparison one{"case", quantity, std::exp(residual), 1.0, {}};
    one.serving = {false, error};
    report.comparisons.push_back(one);
  }
  return report;
}

TEST(ServingCoverage, IsTheResidualAtItsRank) {
  // Rank ceil(0.9 x 20) of 19 is the 18th: 0.18. In ranges of 0.1 lie 10.
  const auto list = serving_coverage_of({file_of("tpot_ms", 19, 0.01, 0.1000001)});
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].figure, "tpot");
  EXPECT_NEAR(list[0].error, 0.18, 1e-12);
  EXPECT_EQ(list[0].inside, 10);
  EXPECT_EQ(list[0].left_out_cases, 0);
}

TEST(ServingCoverage, OfAFileLeftOutTheOthersDecide) {
  // 9 cases give rank 9 of 9, 0.09: of 19 the first 9 lie within; the others' 0.18 covers all 9.
  const auto list =
      serving_coverage_of({file_of("ttft_ms", 19, 0.01, 1.0), file_of("ttft_ms", 9, 0.01, 1.0)});
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].left_out_cases, 28);
  EXPECT_EQ(list[0].left_out_inside, 9 + 9);
}

TEST(ServingCoverage, OnlyFiguresWithARangeCount) {
  EXPECT_TRUE(serving_coverage_of({file_of("e2e_p99_ms", 20, 0.01, 1.0)}).empty());
}

TEST(ServingError, RangesHoldTheirPrediction) {
  const Model dense = read_model("llama3.1-8b", {}), experts = read_model("qwen3-30b-a3b", {});
  for (const ServingFigure figure :
       {ServingFigure::ttft, ServingFigure::tpot, ServingFigure::throughput})
    for (const Model* model : {&dense, &experts}) {
      const Range range = serving_range(20.0, figure, *model);
      EXPECT_NEAR(std::sqrt(range.low * range.high), 20.0, 1e-12);
      EXPECT_LT(range.low, 20.0);
    }
  EXPECT_LT(serving_error(ServingFigure::tpot, dense), serving_error(ServingFigure::tpot, experts));
}

}  // namespace
}  // namespace orrery::serving_coverage_test
