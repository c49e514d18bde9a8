#include "sim/analysis/validate/coverage.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace orrery::coverage_test {
namespace {

// A step of 1 s, all of it one kind: its variance is sigma^2 + training^2.
Comparison step(double ln_measured, double sigma, double training, StepClass of = {}) {
  StepRange range;
  range.step = Seconds{1.0};
  range.path.at(PriceKind::gemm, Tag::interpolated) = Seconds{1.0};
  range.errors.of[0][static_cast<std::size_t>(Tag::interpolated)] = sigma;
  range.errors.training = training;
  range.errors.step_class = of;
  Comparison one{"id", "step_time_s", std::exp(ln_measured), 1.0, {}};
  one.range = range;
  return one;
}

ValidationReport family(const std::string& name, std::vector<Comparison> steps) {
  ValidationReport report;
  report.file = name;
  report.comparisons = std::move(steps);
  return report;
}

// Nine steps off by 1 to 9 %: rank ceil(0.9 x 10) = 9, the largest. Its training error is what
// 1.645 deviations need beyond the 3 % of prices.
TEST(Coverage, TrainingErrorIsTheConformalQuantile) {
  std::vector<Comparison> steps;
  for (int i = 1; i <= 9; ++i) steps.push_back(step(0.01 * (i % 2 == 0 ? i : -i), 0.03, 0.0));
  EXPECT_NEAR(training_error_of(steps), std::sqrt(std::pow(0.09 / 1.645, 2) - 0.03 * 0.03), 1e-12);
  // With nineteen, of which ten are right, rank 18 leaves out the one that is off the most.
  for (int i = 0; i < 10; ++i) steps.push_back(step(0.0, 0.03, 0.0));
  EXPECT_NEAR(training_error_of(steps), std::sqrt(std::pow(0.08 / 1.645, 2) - 0.03 * 0.03), 1e-12);
}

TEST(Coverage, FewerThanNineStepsSayNothing) {
  EXPECT_TRUE(std::isnan(training_error_of(std::vector<Comparison>(8, step(0.1, 0.0, 0.0)))));
  EXPECT_EQ(training_error_of(std::vector<Comparison>(9, step(0.01, 0.03, 0.0))), 0.0);
}

// Nine steps off by 1 to 9 %: median 5 %, of which 9 / 10; the largest distance from 4.5 % is
// that of the last. Their prices account for 3 %.
TEST(Coverage, NineStepsOfASoftwareAreAClass) {
  std::vector<Comparison> steps;
  for (int i = 1; i <= 9; ++i) steps.push_back(step(0.01 * i, 0.03, 0.0));
  steps.push_back(step(0.5, 0.0, 0.0, {.experts = true}));
  const std::vector<PublishedClass> classes = published_classes({family("a", steps)});
  ASSERT_EQ(classes.size(), 1u);
  EXPECT_EQ(classes[0].step, StepClass{});
  const PublishedSteps& found = classes[0].steps;
  EXPECT_EQ(found.runs, 9);
  EXPECT_NEAR(found.offset, 0.045, 1e-12);
  EXPECT_NEAR(found.spread, 0.045, 1e-12);
  EXPECT_NEAR(found.prices, 0.03, 1e-12);
  steps.erase(steps.begin());
  EXPECT_TRUE(published_classes({family("a", steps)}).empty());
}

// 1.645 x 10 % reaches 16 %, not 17 %. Left out, family b has a's training error, 16 % / 1.645, and
// a has none from the two steps of b.
TEST(Coverage, CountsStepsInTheirRanges) {
  const auto a = family("a", std::vector<Comparison>(9, step(0.16, 0.0, 0.1)));
  const auto b = family("b", {step(0.17, 0.0, 0.1), step(-0.15, 0.0, 0.1)});
  const std::vector<Coverage> found = coverage_of({a, b});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].inside, 9);
  EXPECT_EQ(found[0].left_out_steps, 0);
  EXPECT_EQ(found[1].steps, 2);
  EXPECT_EQ(found[1].inside, 1);
  EXPECT_EQ(found[1].left_out_steps, 2);
  EXPECT_EQ(found[1].left_out_inside, 1);
  EXPECT_NEAR(found[1].half_width, std::sinh(0.1645), 1e-12);
}

TEST(Coverage, ClassesDoNotMix) {
  const StepClass mixture{true, false};
  const auto a = family("a", std::vector<Comparison>(9, step(0.16, 0.0, 0.1)));
  const auto b = family("b", std::vector<Comparison>(9, step(0.3, 0.0, 0.1, mixture)));
  const auto errors = training_errors({a, b});
  EXPECT_NEAR(errors.at(StepClass{}), 0.16 / 1.645, 1e-12);
  EXPECT_NEAR(errors.at(mixture), 0.3 / 1.645, 1e-12);
  EXPECT_EQ(coverage_of({a, b})[1].left_out_steps, 0);
}

}  // namespace
}  // namespace orrery::coverage_test
