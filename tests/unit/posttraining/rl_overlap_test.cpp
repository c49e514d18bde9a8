#include "sim/posttraining/rl_overlap.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/posttraining/rl_step.hpp"
#include "sim/posttraining/rollout.hpp"
#include "sim/serving/steady_serving.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::rl_overlap_test {
namespace {

PricedServing priced_of(int gpus, std::optional<std::int64_t> max_seqs = {}) {
  DeploymentRequest request;
  request.tp = 1;
  request.max_seqs = max_seqs;
  return PricedServing{
      make_serving_setup("llama3.1-8b", "dgx-h100", "vllm-2025", request, gpus, {"", ""})};
}

std::vector<Sample> equal_samples(std::int64_t count, std::uint32_t response) {
  return std::vector<Sample>(static_cast<std::size_t>(count), {128, response});
}

SteadyRollout steady(const PricedServing& priced, const std::vector<Sample>& samples,
                     std::int64_t each, std::int64_t prompts) {
  return steady_rollout(priced, samples, each, prompts, SampleRouting::in_turn, {"", ""});
}

// Two answers to each prompt.
std::vector<Sample> pairs(int prompts, std::uint32_t one, std::uint32_t other) {
  std::vector<Sample> samples;
  for (int prompt = 0; prompt < prompts; ++prompt) {
    samples.push_back({128, one});
    samples.push_back({128, other});
  }
  return samples;
}

// If all answers have one length, all samples of a prompt run until it ends, at the rate of the
// closed form, in which one request of 8 computes the prompt.
TEST(SteadyRollout, EqualAnswersAllRun) {
  const PricedServing priced = priced_of(4);
  const SteadyRollout rollout = steady(priced, equal_samples(256, 512), 8, 32);
  EXPECT_NEAR(rollout.running, 256.0, 0.5);
  EXPECT_NEAR(rollout.waiting, 0.0, 0.5);
  EXPECT_EQ(rollout.preempted, 0.0);
  const SteadyState state = steady_state(priced, {16, 512, 256}, {"", ""});
  EXPECT_NEAR(rollout.time / (512.0 * state.tpot), 1.0, 0.02);
  EXPECT_DOUBLE_EQ(rollout.prompt_time.si(), rollout.time.si());
}

// A part of a pool of thousands of equal replicas says what all of it does.
TEST(SteadyRollout, OneOfManyEqualParts) {
  EXPECT_EQ(replayed_replicas(64, 128), 64);
  EXPECT_EQ(replayed_replicas(64, 2048), 8);
  EXPECT_EQ(replayed_replicas(1560, 2048), 195);
  EXPECT_EQ(replayed_replicas(3, 1 << 20), 1);
  SampleLengths lengths;
  lengths.prompt = {LengthDistribution::Kind::fixed, 128, 128};
  lengths.response = {LengthDistribution::Kind::lognormal, 500, 0.0, 0.7};
  lengths.max_response = 2048;
  const std::vector<Sample> samples = draw_samples(lengths, 1024, 8, 1);
  const SteadyRollout whole = steady(priced_of(32), samples, 8, 1024);
  const SteadyRollout part =
      steady_rollout(priced_of(8), samples, 8, 1024, SampleRouting::in_turn, {"", ""}, 4);
  EXPECT_NEAR(part.time / whole.time, 1.0, 0.02);
  EXPECT_NEAR(part.running / whole.running, 1.0, 0.02);
  EXPECT_NEAR(part.prompt_time / whole.prompt_time, 1.0, 0.02);
}

// Of two answers of 100 and 300 tokens the shorter one has ended for two thirds of the time: 200 of
// 300 tokens' time each, 4/3 samples of a prompt.
TEST(SteadyRollout, ShorterAnswersLeaveTheirPlaceEmpty) {
  const PricedServing priced = priced_of(1);
  EXPECT_NEAR(steady(priced, pairs(24, 100, 300), 2, 24).running, 24.0 * 4.0 / 3.0, 0.3);
}

// In a closed loop each prompt keeps its place as long as its longest answer takes: a step of P
// prompts over F places takes P / F times as long as a prompt, whatever the seed of their order.
TEST(SteadyRollout, ManyPlacesShareTheTimeOfAPrompt) {
  const PricedServing priced = priced_of(1);
  const auto samples = pairs(64, 200, 600);
  for (const std::int64_t prompts : {8, 16, 64, 128}) {
    const SteadyRollout rollout = steady(priced, samples, 2, prompts);
    const double running = rollout.running / static_cast<double>(prompts);
    EXPECT_NEAR(running, 4.0 / 3.0, 0.02) << prompts;
    EXPECT_NEAR(rollout.prompt_time / rollout.time, static_cast<double>(prompts) / 64.0, 1e-9);
  }
}

// As many prompts as a step has, which begin as others end, take as long as a burst of them, in
// which all have the same phase: within a tenth for answers of one length.
TEST(SteadyRollout, ABatchUnderWayTakesAsLongAsABurst) {
  const PricedServing priced = priced_of(4);
  for (const std::uint32_t response : {256u, 1024u}) {
    const auto samples = equal_samples(256, response);
    const Seconds busy = steady(priced, samples, 8, 32).time;
    const Seconds burst = replay_rollout(priced, samples, 8, SampleRouting::groups, {"", ""}).time;
    EXPECT_NEAR(busy / burst, 1.0, 0.1) << response;
  }
}

// More under way is never slower, and ends at the engine's own rate once its slots are full; what
// it has no place for waits.
TEST(SteadyRollout, SlotsBoundTheRate) {
  const PricedServing priced = priced_of(1, 16);
  const auto samples = equal_samples(256, 512);
  Seconds before{1e9};
  for (const std::int64_t prompts : {1, 2, 4, 8, 32, 256}) {
    const SteadyRollout rollout = steady(priced, samples, 8, prompts);
    EXPECT_LE(rollout.time.si(), before.si() * 1.01) << prompts;
    EXPECT_LE(rollout.running, 16.01) << prompts;
    EXPECT_EQ(rollout.waiting > 1.0, prompts > 2) << prompts;
    before = rollout.time;
  }
  const SteadyState full = steady_state(priced, {16, 512, 16}, {"", ""});
  EXPECT_NEAR(before.si() / (256.0 * 512.0 / full.output_tokens_per_s), 1.0, 0.03);
}

// A cache that holds fewer than run bounds the rate, too: samples lose their place, and a burst of
// the same samples, whose end is short where all are of one length, takes about as long.
TEST(SteadyRollout, TheCacheBoundsTheRate) {
  DeploymentRequest request;
  request.tp = 1;
  request.kv_share = 0.25;
  request.max_seqs = 512;
  const PricedServing priced{
      make_serving_setup("llama3.1-8b", "dgx-h100", "vllm-2025", request, 1, {"", ""})};
  const auto samples = equal_samples(256, 4096);
  const SteadyRollout rollout = steady(priced, samples, 8, 32);
  EXPECT_GT(rollout.preempted, 0.0);
  EXPECT_GT(rollout.waiting, 1.0);
  EXPECT_GT(rollout.kv_share, 0.8);
  EXPECT_LT(rollout.kv_share, 1.0);
  const Rollout burst = replay_rollout(priced, samples, 8, SampleRouting::groups, {"", ""});
  EXPECT_GT(burst.run.replay.counts.totals.preemptions, 0);
  EXPECT_NEAR(rollout.time / burst.time, 1.0, 0.2);
}

// Seeds order the same lengths differently: the longest answer to a prompt changes a little.
TEST(SteadyRollout, OrdersHardlyMatter) {
  const PricedServing priced = priced_of(4);
  SampleLengths lengths;
  lengths.prompt = {LengthDistribution::Kind::fixed, 128, 128};
  lengths.response = {LengthDistribution::Kind::lognormal, 500, 0.0, 0.7};
  lengths.max_response = 4000;
  std::vector<double> times;
  for (const std::uint64_t seed : {1, 2, 3, 4, 5})
    times.push_back(steady(priced, draw_samples(lengths, 64, 8, seed), 8, 64).time.si());
  const auto [least, most] = std::minmax_element(times.begin(), times.end());
  EXPECT_LT(*most / *least, 1.05);
}

RlRequest usual() {
  RlRequest request;
  request.prompts = 16;
  request.samples = 8;
  request.train_batch = 64;
  request.prompt_length = LengthDistribution{LengthDistribution::Kind::fixed, 128, 128};
  request.mean_response = 600.0;
  request.max_response = 1920;
  request.training.recompute = Recompute::full;
  request.rollout_gpus = 8;
  return request;
}

RlStep step_of(const RlRequest& request, int gpus = 16) {
  return rl_step(make_rl_job(read_model("llama3.1-8b", {}), read_system("dgx-h100", {}),
                             read_rl_framework("nemo-rl", {}), request, gpus, {"", ""}));
}

// Pools of the same GPUs that work at a time take the longer of their halves, which in turn they
// would take one after the other.
TEST(RlOverlap, TheSlowerPoolDecides) {
  RlRequest request = usual();
  const RlStep in_turn = step_of(request);
  request.max_staleness = 1;
  request.in_flight_updates = true;
  const RlStep at_a_time = step_of(request);
  ASSERT_TRUE(at_a_time.overlap);
  const Seconds generation = at_a_time.overlap->generation.time;
  const Seconds trainer = at_a_time.overlap->trainer;
  EXPECT_DOUBLE_EQ(at_a_time.time.si(), std::max(generation, trainer).si());
  EXPECT_LT(at_a_time.time, in_turn.time);
  EXPECT_DOUBLE_EQ(in_turn.time.si(), (in_turn.time_of(RlPhase::generation) + trainer).si());
  // Engines that stop for new weights lose the time of their way.
  request.in_flight_updates = false;
  const RlStep stopping = step_of(request);
  EXPECT_DOUBLE_EQ(
      stopping.time.si(),
      std::max(generation + stopping.time_of(RlPhase::refit), stopping.overlap->trainer).si());
}

// By Little's law: prompts under way are as old as they take, in steps, and a batch waits in the
// buffer where the trainer is slower.
TEST(RlOverlap, TheAgeOfAnswersIsThatOfTheirPrompts) {
  RlRequest request = usual();
  request.max_staleness = 1;
  request.in_flight_updates = true;
  const RlStep step = step_of(request);
  const SteadyRollout& generation = step.overlap->generation;
  const double waiting = step.overlap->trainer > generation.time ? 1.0 : 0.0;
  EXPECT_NEAR(step.overlap->mean_age, std::min(1.0, generation.prompt_time / step.time + waiting),
              1e-12);
}

// A loop that may be ever staler tends to a step of the slower pool's rate.
TEST(RlOverlap, MoreStalenessIsNeverSlower) {
  RlRequest request = usual();
  request.in_flight_updates = true;
  Seconds before{1e9};
  for (const int staleness : {1, 2, 4, 8}) {
    request.max_staleness = staleness;
    const RlStep step = step_of(request);
    EXPECT_LE(step.time.si(), before.si() * 1.01) << staleness;
    EXPECT_LE(step.overlap->mean_age, staleness);
    EXPECT_GT(step.overlap->mean_age, 0.0);
    before = step.time;
  }
  const RlStep step = step_of(request);
  EXPECT_DOUBLE_EQ(step.time.si(), step.overlap->trainer.si());
}

TEST(RlOverlap, LoopsThatCannotBeAreRefused) {
  RlRequest request = usual();
  request.max_staleness = 1;
  request.rollout_gpus.reset();
  EXPECT_EQ(error_text([&] { step_of(request); }),
            "--max_staleness: needs GPUs that generate while others train; add rollout_gpus, or "
            "leave it out");
  request = usual();
  request.max_staleness = 1;
  request.prompts_in_flight = 33;
  EXPECT_EQ(error_text([&] { step_of(request); }),
            "--prompts_in_flight: 33 prompts under way are more than those of 2 steps: the last "
            "ones would be staler than 1 step; use at most 32");
  request.max_staleness = 0;
  EXPECT_EQ(error_text([&] { step_of(request); }),
            "--prompts_in_flight: is of a loop that generates while it trains; add max_staleness, "
            "or leave it out");
}

}  // namespace
}  // namespace orrery::rl_overlap_test
