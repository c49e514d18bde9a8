// Effects of measured runs on the range of another step, by hand.

#include <gtest/gtest.h>

#include <cmath>

#include "sim/training/step_range.hpp"

namespace orrery::own_runs_test {
namespace {

// 0.026^2: of repeated runs.
constexpr double scatter = 0.026 * 0.026;

struct Part {
  PriceKind kind;
  double seconds, sigma;
};

StepRange made_of(std::initializer_list<Part> parts, double own = 0.0) {
  StepRange range;
  constexpr auto interpolated = static_cast<std::size_t>(Tag::interpolated);
  for (const Part& part : parts) {
    range.path.at(part.kind, Tag::interpolated) = Seconds{part.seconds};
    range.errors.of[static_cast<std::size_t>(part.kind)][interpolated] = part.sigma;
    range.step += Seconds{part.seconds};
  }
  range.errors.own = own;
  range.gpu = "g", range.system = "s", range.software = "w";
  return range;
}

MeasuredRun took(double ln_longer, StepRange predicted) {
  return {predicted.step * std::exp(ln_longer), predicted};
}

// One run, all of it products of 20 %, took 10 % longer: of that 0.04 / (0.04 + scatter) is theirs.
// Half of the step is products.
TEST(OwnRuns, OneRunMovesWhatItHasInCommon) {
  const MeasuredRun run = took(0.1, made_of({{PriceKind::gemm, 10, 0.2}}));
  const StepRange step = made_of({{PriceKind::gemm, 5, 0.2}, {PriceKind::network_bytes, 5, 0.1}});
  const StepByRuns found = by_runs(step, {run});
  EXPECT_EQ(found.runs, 1);
  EXPECT_NEAR(found.offset, 0.1 * 0.02 / (0.04 + scatter), 1e-12);
  // Its own variance, (0.1)^2 of products and (0.05)^2 of the network, less what was learned.
  const double variance = 0.01 + 0.0025 + scatter - 0.02 * 0.02 / (0.04 + scatter);
  EXPECT_NEAR(found.deviation, std::sqrt(variance), 1e-12);
  EXPECT_DOUBLE_EQ(found.step(step).si(), 10 * std::exp(found.offset));
  EXPECT_DOUBLE_EQ(found.high(step).si(), 10 * std::exp(found.offset + 1.645 * found.deviation));
}

// Two runs of different mixtures tell products from the network: 0.8 a + 0.2 b = 0.10 and 0.2 a +
// 0.8 b = 0.04 give a = 0.12 and b = 0.02, which is what wide priors and no errors of shapes leave.
TEST(OwnRuns, TwoMixturesSeparateTwoKinds) {
  const auto mixture = [](double products) {
    return made_of(
        {{PriceKind::gemm, products, 3.0}, {PriceKind::network_bytes, 10 - products, 3.0}});
  };
  const std::vector<MeasuredRun> runs{took(0.10, mixture(8)), took(0.04, mixture(2))};
  EXPECT_NEAR(by_runs(made_of({{PriceKind::gemm, 10, 3.0}}), runs).offset, 0.12, 1e-4);
  EXPECT_NEAR(by_runs(made_of({{PriceKind::network_bytes, 10, 3.0}}), runs).offset, 0.02, 1e-4);
}

// n runs of one plan: their mean, of which n v / (n v + scatter) is no accident.
TEST(OwnRuns, ManyRunsOfOnePlanAreItsMean) {
  const StepRange plan = made_of({{PriceKind::gemm, 10, 0.1}}, 0.06);
  const double v = 0.01 + 0.0036;
  for (int n : {1, 4, 16}) {
    std::vector<MeasuredRun> runs;
    for (int i = 0; i < n; ++i) runs.push_back(took(i % 2 == 0 && n > 1 ? 0.07 : 0.05, plan));
    const double mean = n > 1 ? 0.06 : 0.05;
    const StepByRuns found = by_runs(plan, runs);
    EXPECT_NEAR(found.offset, mean * n * v / (n * v + scatter), 1e-12) << n;
    EXPECT_NEAR(found.deviation, std::sqrt(v + scatter - n * v * v / (n * v + scatter)), 1e-12);
  }
}

// Nothing is learned from runs on another GPU, system and software, but what all hosts share.
TEST(OwnRuns, WhatHasNothingInCommonSaysNothing) {
  StepRange elsewhere = made_of({{PriceKind::gemm, 10, 0.2}});
  elsewhere.gpu = "h", elsewhere.system = "t", elsewhere.software = "x";
  const StepRange step = made_of({{PriceKind::gemm, 10, 0.2}});
  const StepByRuns found = by_runs(step, {took(0.3, elsewhere)});
  EXPECT_EQ(found.offset, 0.0);
  EXPECT_NEAR(found.deviation, std::sqrt(0.04 + scatter), 1e-12);
}

// More runs never make a step less certain, and no run is met exactly.
TEST(OwnRuns, EveryRunSharpens) {
  const StepRange step = made_of({{PriceKind::gemm, 7, 0.1}, {PriceKind::memory, 3, 0.05}}, 0.06);
  std::vector<MeasuredRun> runs;
  double before = std::sqrt(step.price_variance() + 0.0036 + scatter);
  for (int i = 0; i < 12; ++i) {
    const double products = 1.0 + 0.7 * i;
    runs.push_back(took(0.02 * (i % 5), made_of({{PriceKind::gemm, products, 0.1},
                                                 {PriceKind::memory, 10 - products, 0.05}},
                                                0.06)));
    const double now = by_runs(step, runs).deviation;
    EXPECT_LT(now, before) << i;
    before = now;
    const StepByRuns itself = by_runs(runs.back().predicted, runs);
    EXPECT_LT(std::abs(itself.offset), 0.08);
    EXPECT_GT(itself.deviation, 0.026);
  }
}

}  // namespace
}  // namespace orrery::own_runs_test
