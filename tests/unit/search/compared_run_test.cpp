#include <gtest/gtest.h>

#include "sim/search/comparison.hpp"

namespace orrery::compared_run_test {
namespace {

// A run that is as many days as its replicates say, of a plan whose step takes `step` seconds, all
// of them matrix products whose price is known to 10 %.
struct Made {
  ComparedPlan plan;
  ComparedRun run;

  Made(double step, std::vector<double> days, const std::string& gpu = "h100") {
    plan.range.step = Seconds{step};
    plan.range.gpu = gpu;
    plan.range.path.at(PriceKind::gemm, Tag::measured) = Seconds{step};
    plan.range.errors
        .of[static_cast<std::size_t>(PriceKind::gemm)][static_cast<std::size_t>(Tag::measured)] =
        0.1;
    run.plan = &plan;
    run.run.figures.days = chance_range(days);
    run.run.figures.days_of = std::move(days);
  }
};

std::vector<double> days(double first, double step) {
  std::vector<double> all;
  for (int i = 0; i <= 100; ++i) all.push_back(first + step * i);
  return all;
}

// Days differ from 50 to 150 by failures, but from each other by two alone, in every replicate.
TEST(ComparedRuns, FailuresThatBothMeetCancel) {
  const Made one{10.0, days(50.0, 1.0)}, other{10.2, days(52.0, 1.0)};
  const RunDifference found = difference(one.run, other.run);
  EXPECT_NEAR(found.chance.low, 2.0, 1e-12);
  EXPECT_NEAR(found.chance.high, 2.0, 1e-12);
  // One price, one error: 10 % of what the longer run takes longer.
  EXPECT_NEAR(found.steps, 0.1 * 2.0, 1e-9);
  EXPECT_FALSE(found.is_tie());
  EXPECT_NEAR(found.low(), 2.0 - 1.645 * 0.2, 1e-9);
}

// On two kinds of GPUs prices have errors of their own: 10 % of 100 and of 102 days.
TEST(ComparedRuns, StepTimesThatAreNotKnownMakeATie) {
  const Made one{10.0, days(50.0, 1.0)}, other{10.2, days(52.0, 1.0), "b200"};
  const RunDifference found = difference(one.run, other.run);
  EXPECT_NEAR(found.steps, std::hypot(10.0, 10.2), 1e-9);
  EXPECT_TRUE(found.is_tie());
}

// If only failures matter, the ends are those of the sampled runs, however skewed they are.
TEST(ComparedRuns, OfOnePlanDifferByTheirDraws) {
  std::vector<double> later = days(50.0, 1.0);
  for (std::size_t i = 0; i < later.size(); ++i) later[i] += i < 90 ? 0.1 : 30.0;
  const Made one{10.0, days(50.0, 1.0)}, other{10.0, later};
  RunDifference found = difference(one.run, other.run);
  // Days that are not steps are known no better than the steps of both.
  EXPECT_GT(found.steps, 0.0);
  found.steps = 0.0;
  EXPECT_NEAR(found.low(), 0.1, 1e-9);
  EXPECT_NEAR(found.high(), 30.0, 1e-9);
  EXPECT_FALSE(found.is_tie());
}

}  // namespace
}  // namespace orrery::compared_run_test
