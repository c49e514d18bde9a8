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

// Half-widths of 0.2, and 0.11 after an own step of the plan; prices without errors.
Comparison published_step(double ln_measured, const std::string& publication) {
  Comparison one = step(ln_measured, 0.0, 0.0);
  one.range->errors.published = PublishedSteps{1, 1, 0.2, 0.4, Seconds{}, 0.11, 0.4, 0.1};
  one.publication = publication;
  one.plan = std::to_string(ln_measured);
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

// Steps of one publication share its vote: of ten publications with a step each, off by 1 to 10 %,
// nine have 9 % and less.
TEST(Coverage, APublicationHasOneVote) {
  std::vector<Comparison> steps;
  for (int i = 1; i <= 10; ++i) steps.push_back(published_step(0.01 * i, std::to_string(i)));
  EXPECT_NEAR(published_steps({family("a", steps)})->described, 0.09, 1e-12);
  // Of 22 votes, twelve without error, 19.8 are needed: the eighth of the others.
  for (int i = 0; i < 12; ++i) steps.push_back(published_step(0.0, "x" + std::to_string(i)));
  EXPECT_NEAR(published_steps({family("a", steps)})->described, 0.08, 1e-12);
  // Two hundred large errors of the first publication take its vote along, and no other.
  for (int i = 0; i < 200; ++i) steps.push_back(published_step(0.5, "1"));
  const PublishedSteps one_vote = *published_steps({family("a", steps)});
  EXPECT_NEAR(one_vote.described, 0.09, 1e-12);
  EXPECT_EQ(one_vote.publications, 22);
  EXPECT_EQ(one_vote.steps, 222);
  EXPECT_NEAR(published_steps({family("a", steps)}, "1")->described, 0.08, 1e-12);
  EXPECT_FALSE(published_steps({family("a", {published_step(0.1, "1")})}, "1"));
}

// What a step of 1 s is off by besides 0.03 of 1.03 s: sqrt(0.05^2 - 0.03^2) in hundredths.
TEST(Coverage, WidthIsWhatIsLeftBesidesTheMissingSeconds) {
  Comparison one = published_step(0.05, "1");
  one.range->errors.published->missing = Seconds{0.03 / 0.97};
  EXPECT_NEAR(published_steps({family("a", {one})})->described, 0.04, 1e-12);
}

TEST(Coverage, WhereAnotherStandsInDoesNotCount) {
  Comparison other = published_step(0.4, "2");
  other.range->stands_in = true;
  const ValidationReport report = family("a", {published_step(0.1, "1"), other});
  EXPECT_NEAR(published_steps({report})->described, 0.1, 1e-12);
  const std::vector<RangeScore> scores = range_scores({report});
  ASSERT_EQ(scores.size(), 2u);
  EXPECT_TRUE(scores[1].stands_in);
  EXPECT_EQ(scores[1].as_printed.in_range, 1.0);
}

// Two publications, of which one has two steps: one of three is outside, a quarter of the votes.
// Its score is twice 0.2 and 20 times the 0.1 that it lies outside. The other's range from the
// first's steps is 0.3 wide, the first's from the other's 0.1.
TEST(Coverage, ScoresAreMeansOfPublications) {
  const ValidationReport report =
      family("a", {published_step(0.3, "1"), published_step(0.1, "1"), published_step(0.1, "2")});
  const RangeScore score = range_scores({report}).front();
  EXPECT_EQ(score.publications, 2);
  EXPECT_EQ(score.steps, 3);
  EXPECT_NEAR(score.as_printed.half_width, 0.2, 1e-12);
  EXPECT_NEAR(score.as_printed.in_range, 0.75, 1e-12);
  EXPECT_NEAR(score.as_printed.score, 0.4 + 0.25 * 20 * 0.1, 1e-12);
  EXPECT_NEAR(score.left_out.half_width, 0.5 * (0.1 + 0.3), 1e-12);
  EXPECT_NEAR(score.left_out.in_range, 0.75, 1e-12);
  EXPECT_NEAR(score.left_out.score, 0.4 + 0.25 * 20 * 0.2, 1e-12);
  EXPECT_NEAR(score.fixed.score, score.as_printed.score, 1e-12);
  EXPECT_EQ(score.pair_publications, 0);
}

// Two steps of one plan, off by 20 %, predict each other within 0.11.
TEST(Coverage, AnOwnStepOfThePlanNarrowsTheRange) {
  Comparison one = published_step(0.2, "1"), other = published_step(0.2, "1");
  one.plan = other.plan = "p";
  const RangeScore score = range_scores({family("a", {one, other})}).front();
  EXPECT_EQ(score.pair_publications, 1);
  EXPECT_NEAR(score.by_own_step.half_width, 0.11, 1e-9);
  EXPECT_EQ(score.by_own_step.in_range, 1.0);
  other.measured = std::exp(0.05);
  EXPECT_EQ(range_scores({family("a", {one, other})}).front().by_own_step.in_range, 0.0);
}

// 1.645 x 10 % reaches 16 %, not 17 %.
TEST(Coverage, CountsStepsInTheirRanges) {
  const auto a = family("a", std::vector<Comparison>(9, step(0.16, 0.0, 0.1)));
  const auto b = family("b", {step(0.17, 0.0, 0.1), step(-0.15, 0.0, 0.1)});
  const std::vector<Coverage> found = coverage_of({a, b});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].inside, 9);
  EXPECT_EQ(found[1].steps, 2);
  EXPECT_EQ(found[1].inside, 1);
  EXPECT_NEAR(found[1].half_width, std::sinh(0.1645), 1e-12);
}

TEST(Coverage, ClassesDoNotMix) {
  const StepClass mixture{true, false};
  const auto a = family("a", std::vector<Comparison>(9, step(0.16, 0.0, 0.1)));
  const auto b = family("b", std::vector<Comparison>(9, step(0.3, 0.0, 0.1, mixture)));
  const auto errors = training_errors({a, b});
  EXPECT_NEAR(errors.at(StepClass{}), 0.16 / 1.645, 1e-12);
  EXPECT_NEAR(errors.at(mixture), 0.3 / 1.645, 1e-12);
}

}  // namespace
}  // namespace orrery::coverage_test
