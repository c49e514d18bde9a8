#include "sim/posttraining/rollout.hpp"

#include <gtest/gtest.h>

namespace orrery::rollout_test {
namespace {

PricedServing priced_of(const std::string& engine, int tp, int gpus) {
  DeploymentRequest request;
  request.tp = tp;
  return PricedServing{
      make_serving_setup("llama3.1-8b", "dgx-h100", engine, request, gpus, {"", ""})};
}

std::vector<Sample> samples_of(const LengthDistribution& response, std::int64_t most,
                               std::int64_t prompts, std::int64_t each) {
  SampleLengths lengths;
  lengths.prompt = {LengthDistribution::Kind::fixed, 128, 128};
  lengths.response = response;
  lengths.max_response = most;
  return draw_samples(lengths, prompts, each, 7);
}

const LengthDistribution fixed_length{LengthDistribution::Kind::fixed, 512, 512};
const LengthDistribution uniform{LengthDistribution::Kind::uniform, 100, 2000};
const LengthDistribution lognormal{LengthDistribution::Kind::lognormal, 400, 400, 0.8};

// Where nothing waits for memory, the replay takes as long as the sum over the survivors.
TEST(Rollout, TheReplayIsTheSumOverTheSurvivors) {
  for (const char* engine : {"vllm-2025", "sglang"})
    for (const LengthDistribution& lengths : {fixed_length, uniform, lognormal})
      for (const std::int64_t prompts : {1, 4, 16}) {
        const PricedServing priced = priced_of(engine, 1, 1);
        const auto samples = samples_of(lengths, 4096, prompts, 8);
        const Rollout rollout = replay_rollout(priced, samples, 8, SampleRouting::groups, {"", ""});
        const Seconds sum = survival_sum(priced, samples, 8);
        EXPECT_EQ(rollout.run.replay.counts.totals.preemptions, 0);
        EXPECT_NEAR(rollout.time / sum, 1.0, 0.01) << engine << " " << prompts;
      }
}

// All samples are answered, whichever replica has them, and their tokens are those of the samples.
TEST(Rollout, NothingIsLostOnTheWayToReplicas) {
  const auto samples = samples_of(lognormal, 4096, 9, 7);
  const SampleStatistics all = statistics_of(samples, {});
  for (const SampleRouting routing :
       {SampleRouting::groups, SampleRouting::in_turn, SampleRouting::by_length})
    for (const int gpus : {1, 2, 8}) {
      const Rollout rollout =
          replay_rollout(priced_of("vllm-2025", 1, gpus), samples, 7, routing, {"", ""});
      const ReplayTotals& totals = rollout.run.replay.counts.totals;
      EXPECT_EQ(totals.finished, 63);
      EXPECT_EQ(totals.prompt_tokens + totals.output_tokens, all.tokens);
      EXPECT_GT(rollout.busy, 0.0);
      EXPECT_LE(rollout.busy, 1.0 + 1e-9);
      EXPECT_LE(rollout.half, rollout.nine_tenths);
      EXPECT_LE(rollout.nine_tenths, rollout.time);
    }
}

// A prompt is computed once for all of its samples on a replica.
TEST(Rollout, SamplesOfAPromptShareItsPrefix) {
  const auto samples = samples_of(fixed_length, 512, 4, 16);
  const Rollout rollout =
      replay_rollout(priced_of("vllm-2025", 1, 1), samples, 16, SampleRouting::groups, {"", ""});
  const ReplayTotals& totals = rollout.run.replay.counts.totals;
  // 15 of 16 prompts find 112 of their 128 tokens: the last block is computed for its output.
  EXPECT_GE(totals.prefix_hit_tokens, 4 * 15 * 112);
}

// More replicas never take longer, and no number is below the longest answer alone.
TEST(Rollout, ReplicasDoNotShortenTheLongestAnswer) {
  const auto samples = samples_of(lognormal, 4096, 32, 8);
  const auto longest =
      *std::max_element(samples.begin(), samples.end(),
                        [](const Sample& a, const Sample& b) { return a.response < b.response; });
  Seconds before{1e9};
  for (const int gpus : {1, 2, 4, 8, 16, 32}) {
    const PricedServing priced = priced_of("vllm-2025", 1, gpus);
    const Rollout rollout = replay_rollout(priced, samples, 8, SampleRouting::by_length, {"", ""});
    const Seconds alone =
        replay_rollout(priced, {longest}, 1, SampleRouting::groups, {"", ""}).time;
    EXPECT_LE(rollout.time.si(), before.si() * 1.001) << gpus;
    EXPECT_GE(rollout.time, 0.999 * alone) << gpus;
    before = rollout.time;
  }
}

TEST(Rollout, ALargerLimitIsNeverShorter) {
  const PricedServing priced = priced_of("vllm-2025", 1, 2);
  Seconds before;
  for (const std::int64_t most : {256, 512, 1024, 2048, 4096}) {
    const Rollout rollout = replay_rollout(priced, samples_of(lognormal, most, 16, 8), 8,
                                           SampleRouting::groups, {"", ""});
    EXPECT_GE(rollout.time, before) << most;
    before = rollout.time;
  }
}

}  // namespace
}  // namespace orrery::rollout_test
