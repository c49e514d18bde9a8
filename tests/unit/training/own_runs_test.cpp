// Effects of measured runs on the range of another step, by hand.

#include <gtest/gtest.h>

#include <cmath>

#include "sim/training/step_range.hpp"

namespace orrery::own_runs_test {
namespace {

// Half-widths of 0.2, and of 0.11 after a step of the same plan; 0.4 where another stands in. A
// publication has 0.4 of what a step of the same plan tells.
const PublishedSteps published{30, 746, 0.2, 0.4, Seconds{}, 0.11, 0.4, 0.1};

StepRange step_of(double seconds, bool stands_in = false) {
  StepRange range;
  range.step = Seconds{seconds};
  range.path.at(PriceKind::gemm, Tag::interpolated) = Seconds{seconds};
  range.errors.published = published;
  range.gpu = "g", range.system = "s", range.software = "w";
  range.stands_in = stands_in;
  return range;
}

MeasuredRun took(double ln_longer, const StepRange& predicted, const std::string& plan) {
  return {predicted.step * std::exp(ln_longer), predicted, plan};
}

double variance(double half_width) { return std::pow(half_width / 1.645, 2); }

// v - (v - r)^2 / v = that of 0.11 gives r, what a step has for itself.
const double all = variance(0.2);
const double own = all - std::sqrt(all * (all - variance(0.11)));
const double common = 0.4 * (all - own);

// One step of the same plan: of its 10 %, (v - r) / v are the plan's, and 0.11 remain.
TEST(OwnRuns, OneRunOfThePlanNarrowsTheRange) {
  const StepRange step = step_of(10);
  const StepByRuns found = by_runs(step, "p", {took(0.1, step_of(7), "p")});
  EXPECT_EQ(found.runs, 1);
  EXPECT_EQ(found.same_plan, 1);
  EXPECT_NEAR(found.offset, 0.1 * (all - own) / all, 1e-12);
  EXPECT_NEAR(found.half_width, 0.11, 1e-9);
  EXPECT_DOUBLE_EQ(found.step(step).si(), 10 * std::exp(found.offset));
  EXPECT_DOUBLE_EQ(found.low(step).si(), 10 * std::exp(found.offset - found.half_width));
  EXPECT_DOUBLE_EQ(found.high(step).si(), 10 * std::exp(found.offset + found.half_width));
}

// More of them move the step, but tell nothing more of another number of GPUs.
TEST(OwnRuns, FurtherRunsOfThePlanDoNotNarrowIt) {
  const StepRange step = step_of(10);
  std::vector<MeasuredRun> runs;
  for (int n = 1; n <= 16; ++n) {
    runs.push_back(took(0.05, step, "p"));
    const StepByRuns found = by_runs(step, "p", runs);
    EXPECT_EQ(found.same_plan, n);
    EXPECT_NEAR(found.offset, 0.05 * n * (all - own) / (n * (all - own) + own), 1e-12) << n;
    EXPECT_NEAR(found.half_width, 0.11, 1e-9) << n;
  }
}

// n runs of n other plans tell what the software has in common: c of the v of each.
TEST(OwnRuns, RunsOfOtherPlansTellOfTheSoftware) {
  const StepRange step = step_of(10);
  std::vector<MeasuredRun> runs;
  for (int n = 1; n <= 10; ++n) {
    runs.push_back(took(0.1, step_of(3.0 * n), std::to_string(n)));
    const StepByRuns found = by_runs(step, "p", runs);
    EXPECT_EQ(found.same_plan, 0);
    const double told = n * common / (n * common + all - common);
    EXPECT_NEAR(found.offset, 0.1 * told, 1e-12) << n;
    EXPECT_NEAR(found.half_width, 1.645 * std::sqrt(all - told * common), 1e-12) << n;
  }
}

// Where another software stands in, all that is uncertain beyond a described one is the software's.
TEST(OwnRuns, TellMoreWhereAnotherSoftwareStandsIn) {
  const StepRange step = step_of(10, true);
  EXPECT_NEAR(step.half_width(), 0.4, 1e-12);
  const StepByRuns other = by_runs(step, "p", {took(0.3, step, "q")});
  const double more = variance(0.4) - all + common;
  EXPECT_NEAR(other.offset, 0.3 * more / variance(0.4), 1e-12);
  EXPECT_NEAR(other.half_width, 1.645 * std::sqrt(variance(0.4) - more * more / variance(0.4)),
              1e-12);
  EXPECT_LT(by_runs(step, "p", {took(0.3, step, "p")}).half_width, other.half_width);
}

// Nor does one for which the same file stands in, or the other way round.
TEST(OwnRuns, AnotherSoftwareSaysNothing) {
  StepRange elsewhere = step_of(10);
  elsewhere.software = "x";
  for (const StepRange& other : {elsewhere, step_of(10, true)}) {
    const StepByRuns found = by_runs(step_of(10), "p", {took(0.3, other, "q")});
    EXPECT_EQ(found.offset, 0.0);
    EXPECT_NEAR(found.half_width, 0.2, 1e-12);
  }
}

// A short step misses seconds that a long one does not: it never moves by more than what was
// measured.
TEST(OwnRuns, AShortStepMovesByNoMoreThanALongOne) {
  StepRange brief = step_of(0.02), lasting = step_of(20);
  brief.errors.published->missing = lasting.errors.published->missing = Seconds{0.2};
  const double by_long = by_runs(brief, "p", {took(0.4, lasting, "p")}).offset;
  EXPECT_GT(by_long, 0.0);
  EXPECT_LE(by_long, 0.4);
  EXPECT_LE(by_runs(lasting, "p", {took(0.4, brief, "p")}).offset, by_long);
}

// More runs never make a step less certain.
TEST(OwnRuns, EveryRunSharpens) {
  const StepRange step = step_of(5);
  std::vector<MeasuredRun> runs;
  double before = step.half_width();
  for (int i = 0; i < 12; ++i) {
    runs.push_back(took(0.02 * (i % 5), step_of(1.0 + i, i % 3 == 0), std::to_string(i % 7)));
    const double now = by_runs(step, "p", runs).half_width;
    EXPECT_LE(now, before + 1e-12) << i;
    before = now;
  }
}

}  // namespace
}  // namespace orrery::own_runs_test
