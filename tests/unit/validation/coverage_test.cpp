#include "sim/validation/coverage.hpp"

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
  range.software = "a";
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

// Nine steps off by 1 to 9 %: median 5 %, of which 9 / 10. Below 4.5 % they are 0.5 to 3.5 % from
// it, above 0.5 to 4.5 %: root mean squares of sqrt(5.25) and sqrt(8.25) %. The last is the
// farthest by the roots of these, and tells both limits. Of any software it is 9 % to both sides.
TEST(Coverage, NineStepsOfASoftwareAreAClass) {
  std::vector<Comparison> steps;
  for (int i = 1; i <= 9; ++i) steps.push_back(step(0.01 * i, 0.03, 0.0));
  steps.push_back(step(0.5, 0.0, 0.0, {.experts = true}));
  const std::vector<PublishedClass> classes = published_classes({family("a", steps)});
  ASSERT_EQ(classes.size(), 2u);
  for (const PublishedClass& one : classes) {
    EXPECT_EQ(one.step, StepClass{});
    EXPECT_EQ(one.steps.runs, 9);
    EXPECT_NEAR(one.steps.prices, 0.03, 1e-12);
  }
  const PublishedSteps any = classes[0].steps, own = classes[1].steps;
  EXPECT_EQ(any.software, "");
  EXPECT_EQ(any.offset, 0.0);
  EXPECT_NEAR(any.low, -0.09, 1e-12);
  EXPECT_NEAR(any.high, 0.09, 1e-12);
  EXPECT_EQ(own.software, "a");
  EXPECT_NEAR(own.offset, 0.045, 1e-12);
  EXPECT_NEAR(own.high, 0.09, 1e-12);
  EXPECT_NEAR(own.low, 0.045 - 0.045 * std::pow(5.25 / 8.25, 0.25), 1e-12);
  steps.erase(steps.begin());
  EXPECT_TRUE(published_classes({family("a", steps)}).empty());
}

TEST(Coverage, ExactPricesMakeNoRangeWider) {
  PublishedSteps steps;
  EXPECT_EQ(steps.times_wider(0.1), 1.0);
  steps.prices = 0.05;
  EXPECT_EQ(steps.times_wider(0.02), 1.0);
  EXPECT_EQ(steps.times_wider(0.1), 2.0);
}

// Of any software, steps with experts are one class, whatever their format.
TEST(Coverage, ExpertsOfAllFormatsAreOneClass) {
  std::vector<Comparison> steps;
  for (int i = 1; i <= 9; ++i)
    steps.push_back(step(0.01 * i, 0.03, 0.0, {.experts = true, .narrow = i % 2 == 0}));
  const std::vector<PublishedClass> classes = published_classes({family("a", steps)});
  ASSERT_EQ(classes.size(), 1u);
  EXPECT_EQ(classes[0].steps.software, "");
  EXPECT_EQ(classes[0].step, (StepClass{.experts = true, .narrow = false}));
  EXPECT_EQ(of_any_software({true, true}), classes[0].step);
  EXPECT_EQ(of_any_software({false, true}), (StepClass{false, true}));
}

// 1.645 x 10 % reaches 16 %, not 17 %. Left out, family b has the range of a's steps, which is
// 16 %, and a has none from the two steps of b.
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
  EXPECT_NEAR(found[1].left_out_half_width, std::sinh(0.16), 1e-12);
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
