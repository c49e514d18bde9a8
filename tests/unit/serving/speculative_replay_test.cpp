#include <gtest/gtest.h>

#include <cmath>

#include "sim/serving/replica.hpp"
#include "sim/serving/request_traffic.hpp"
#include "tests/unit/serving/replay_cases.hpp"

namespace orrery::speculative_replay_test {
namespace {

StepCosts drafting(int drafted, double a_step) {
  StepCosts costs = affine_costs();
  costs.step_tokens = 1 + drafted;
  costs.progress = a_step;
  costs.draft = [drafted](double n) { return Seconds{drafted * (1e-3 + 1e-6 * n)}; };
  return costs;
}

ReplayShape replica(const SchedulerKind* scheduling, int drafted, double a_step) {
  ReplayShape shape = one_replica(scheduling);
  shape.replica.rules.step_tokens = 1 + drafted;
  shape.replica.rules.progress = a_step;
  return shape;
}

// By hand: 1.625 tokens a step are 1, 2, 1, 2, 2, 1, 2, 2. Rates are exact in binary.
TEST(StepProgress, BringsWholeTokensAsEvenlyAsTheyCan) {
  for (const double a_step : {1.0, 1.625, 2.0, 2.375, 3.96875})
    for (const std::int64_t done : {0, 1, 3, 10}) {
      StepProgress progress{a_step};
      progress.take(done);
      const double made = static_cast<double>(done) * a_step;
      const double left = made - std::floor(made);
      for (std::int64_t steps = 1; steps < 40; ++steps) {
        const std::int64_t tokens = progress.tokens_of(steps);
        EXPECT_EQ(tokens, static_cast<std::int64_t>(
                              std::floor(left + static_cast<double>(steps) * a_step)));
        EXPECT_LE(progress.steps_for(tokens), steps);
        EXPECT_EQ(progress.tokens_of(progress.steps_for(tokens)), tokens);
        EXPECT_EQ(progress.steps_for(tokens + 1), steps + 1);
        const std::int64_t room = tokens + 4;
        const std::int64_t within = progress.steps_within(room, 4);
        if (a_step > 1.0) {
          EXPECT_TRUE(within == 1 || progress.tokens_of(within - 1) + 4 <= room);
          EXPECT_GT(progress.tokens_of(within) + 4, room);
        }
      }
    }
}

// A single request takes as many steps as bring its tokens; each works on all drafted ones, and
// drafting is added.
TEST(Speculation, ASingleRequestTakesItsClosedForm) {
  for (const SchedulerKind* scheduling : schedulers())
    for (const auto& [drafted, a_step] :
         {std::pair{1, 1.65}, {3, 2.11}, {3, 4.0}, {4, 1.0}, {2, 2.5}})
      for (const std::uint32_t output : {2u, 17u, 1001u}) {
        const StepCosts costs = drafting(drafted, a_step);
        const ReplayCounts counts = replay_requests(equal_requests(1, 1000, output),
                                                    replica(scheduling, drafted, a_step), costs)
                                        .counts;
        const double steps = std::ceil((output - 1.0) / a_step - 1e-12);
        // Contexts 1000, 1000 + a_step, ...
        const double step = costs.dense(1 + drafted).si() + costs.head(1 + drafted).si() +
                            costs.decode_attention(1, 1000).si() + costs.draft(1).si();
        const double decodes = steps * step + 2e-9 * a_step * steps * (steps - 1.0) / 2.0;
        EXPECT_NEAR((counts.e2e.mean() - counts.ttft.mean()).si() / decodes, 1.0, 1e-5)
            << drafted << " " << a_step << " " << output;
        EXPECT_EQ(counts.totals.decode_steps, static_cast<std::int64_t>(steps));
        EXPECT_EQ(counts.itl.count(), static_cast<std::uint64_t>(steps));
        EXPECT_EQ(counts.totals.output_tokens, output);
      }
}

TEST(Speculation, ConservesTokensAndIsFoldedAsOthers) {
  RequestTraffic traffic;
  traffic.arrivals = Arrivals::poisson;
  traffic.rate = 5.0;
  traffic.requests = 1000;
  traffic.prompt = {LengthDistribution::Kind::lognormal, 735, 735, 0.8};
  traffic.output = {LengthDistribution::Kind::lognormal, 200, 200, 0.8};
  RequestList list = sample_requests(traffic);
  std::int64_t tokens = 0;
  for (Request& request : list.requests) {
    request.prompt_tokens = std::min(request.prompt_tokens, 4000u);
    request.output_tokens = std::min(request.output_tokens, 4000u);
    tokens += request.output_tokens;
  }
  for (const SchedulerKind* scheduling : schedulers())
    for (const std::int64_t kv : {9'000, 400'000}) {
      ReplayShape shape = replica(scheduling, 3, 2.39);
      shape.replica.kv.tokens = kv;
      const ReplayCounts folded = replay_requests(list, shape, drafting(3, 2.39)).counts;
      EXPECT_EQ(folded.totals.finished, 1000);
      EXPECT_EQ(folded.totals.output_tokens, tokens);
      EXPECT_NEAR(folded.totals.present / folded.totals.stayed, 1.0, 1e-9);
      EXPECT_NEAR(folded.itl.sum() / (folded.e2e.sum() - folded.ttft.sum()), 1.0, 1e-9);
      EXPECT_LE(folded.totals.kv_peak, 1.0);
      shape.replica.replay.unfolded = true;
      const ReplayCounts unfolded = replay_requests(list, shape, drafting(3, 2.39)).counts;
      SCOPED_TRACE(scheduling->name + " " + std::to_string(kv));
      EXPECT_EQ(folded.totals.iterations, unfolded.totals.iterations);
      EXPECT_NEAR(folded.e2e.mean() / unfolded.e2e.mean(), 1.0, 1e-3);
      EXPECT_NEAR(folded.tpot.mean() / unfolded.tpot.mean(), 1.0, 1e-3);
    }
}

// Without drafts nothing changes; drafts that are free and all accepted help every request.
TEST(Speculation, FreeDraftsThatAreAcceptedDivideTheTime) {
  const RequestList list = equal_requests(64, 800, 401);
  ReplayShape shape = one_replica();
  const StepCosts fixed = fixed_costs(Seconds{0.01});
  const ReplayCounts plain = replay_requests(list, shape, fixed).counts;
  StepCosts costs = fixed;
  costs.step_tokens = 4;
  costs.progress = 4.0;
  const ReplayCounts four = replay_requests(list, replica(scheduler("vllm"), 3, 4.0), costs).counts;
  EXPECT_NEAR(plain.tpot.mean() / four.tpot.mean(), 4.0, 1e-9);
  EXPECT_NEAR(plain.itl.mean().si(), four.itl.mean().si(), 1e-12);
}

}  // namespace
}  // namespace orrery::speculative_replay_test
