#include <gtest/gtest.h>

#include "sim/search/search.hpp"

namespace orrery::ties_test {
namespace {

// A plan of `gemm` s at 10 % and `network` s at 20 %, on the same prices as all others here.
Found plan(double gemm, double network, double score) {
  Found found;
  StepRange& range = found.result.range;
  range.step = Seconds{gemm + network};
  range.path.at(PriceKind::gemm, Tag::interpolated) = Seconds{gemm};
  range.path.at(PriceKind::network_bytes, Tag::interpolated) = Seconds{network};
  constexpr auto interpolated = static_cast<std::size_t>(Tag::interpolated);
  range.errors.of[static_cast<std::size_t>(PriceKind::gemm)][interpolated] = 0.1;
  range.errors.of[static_cast<std::size_t>(PriceKind::network_bytes)][interpolated] = 0.2;
  found.score = score;
  return found;
}

bool tie(const Found& one, const Found& best, Goal goal = Goal::step_time, bool pareto = false) {
  SearchRequest request;
  request.goal = goal;
  if (pareto) request.list.kind = BestList::Kind::front;
  return is_tie(one, best, request);
}

// 0.1 s more of the network are 0.1 +- 1.645 x 0.02 s. One second of products in place of one on
// the network is 0.1 +- 1.645 x sqrt(0.11^2 + 0.2^2) s.
TEST(Ties, WhatBothHaveInCommonCancels) {
  const Found best = plan(9, 1, 10);
  EXPECT_TRUE(tie(best, best));
  EXPECT_FALSE(tie(plan(9, 1.1, 10.1), best));
  EXPECT_TRUE(tie(plan(10.1, 0, 10.1), best));
}

// Half as many GPUs count half: 20 s against 10 s is a tie by what they cost, not by time. All of
// the difference is the first plan's 1 s of network against 0.5 s.
TEST(Ties, ScoresThatCountAStepDifferently) {
  EXPECT_TRUE(tie(plan(19, 1, 10), plan(9, 1, 10), Goal::cost_per_token));
  EXPECT_FALSE(tie(plan(19, 1, 20), plan(9, 1, 10), Goal::cost_per_token));
}

TEST(Ties, FewerGpusAreFewer) {
  EXPECT_FALSE(tie(plan(9, 1, 128), plan(9, 1, 64), Goal::gpus));
  EXPECT_TRUE(tie(plan(10.1, 0, 64), plan(9, 1, 64), Goal::gpus));
}

TEST(Ties, OfAFrontNothingButTheBest) {
  const Found best = plan(9, 1, 10);
  EXPECT_TRUE(tie(best, best, Goal::step_time, true));
  EXPECT_FALSE(tie(plan(10.1, 0, 10.1), best, Goal::step_time, true));
}

}  // namespace
}  // namespace orrery::ties_test
