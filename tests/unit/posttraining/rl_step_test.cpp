#include "sim/posttraining/rl_step.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/posttraining/rl_text.hpp"
#include "sim/training/estimate.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::rl_step_test {
namespace {

RlRequest usual() {
  RlRequest request;
  request.prompts = 16;
  request.samples = 8;
  request.train_batch = 64;
  request.prompt_length = LengthDistribution{LengthDistribution::Kind::fixed, 128, 128};
  request.mean_response = 600.0;
  request.max_response = 1920;
  request.training.recompute = Recompute::full;
  return request;
}

RlJob job_of(const RlRequest& request, int gpus, const std::string& framework = "nemo-rl") {
  return make_rl_job(read_model("llama3.1-8b", {}), read_system("dgx-h100", {}),
                     read_rl_framework(framework, {}), request, gpus, {"", ""});
}

TEST(RlStep, PhasesAddUpToTheStep) {
  for (const char* framework : {"nemo-rl", "verl-megatron", "verl-fsdp"})
    for (const RlAlgorithm algorithm : {RlAlgorithm::grpo, RlAlgorithm::dapo, RlAlgorithm::ppo}) {
      RlRequest request = usual();
      request.algorithm = algorithm;
      // Two models beside an engine do not fit.
      request.free_weights = request.free_optimizer = algorithm == RlAlgorithm::ppo;
      const RlStep step = rl_step(job_of(request, 8, framework));
      Seconds sum;
      for (const RlPhaseTime& phase : step.phases) {
        EXPECT_GT(phase.time, Seconds{});
        EXPECT_LE(phase.busy, 1.0 + 1e-9);
        sum += phase.time;
      }
      EXPECT_DOUBLE_EQ(sum.si(), step.time.si());
      EXPECT_EQ(step.time_of(RlPhase::critic) > Seconds{}, algorithm == RlAlgorithm::ppo);
      EXPECT_GT(step.time_of(RlPhase::generation), Seconds{});
      EXPECT_GT(step.time_of(RlPhase::training), Seconds{});
    }
}

// The training half is the estimate of the packed batch, as often as there are optimizer steps.
TEST(RlStep, TrainingIsTheEstimateOfThePackedBatch) {
  RlRequest request = usual();
  const RlJob job = job_of(request, 8, "verl-megatron");
  EXPECT_EQ(job.optimizer_steps, 2);
  const RlStep step = rl_step(job);
  const Seconds alone = estimate(job.training, Detail{.most_memory = 1e9}).result.step_time;
  EXPECT_DOUBLE_EQ(step.time_of(RlPhase::training).si(), 2.0 * alone.si());
  EXPECT_EQ(job.training.plan.gbs, job.batches.count * 8);
}

// Batch by batch, a loop that generates while it trains takes as long as the slower half, and its
// rollout has its tail.
TEST(RlStep, WholeBatchesWhileTraining) {
  RlRequest request = usual();
  request.rollout_gpus = 4;
  request.async_engine = true;
  const RlStep by_turns = rl_step(job_of(request, 8));
  request.max_staleness = 1;
  const RlStep stream = rl_step(job_of(request, 8));
  request.whole_batches = true;
  const RlStep batches = rl_step(job_of(request, 8));
  ASSERT_TRUE(batches.overlap);
  EXPECT_EQ(batches.overlap->generation.time, by_turns.time_of(RlPhase::generation));
  EXPECT_LT(stream.overlap->generation.time, batches.overlap->generation.time);
  EXPECT_NEAR(batches.time.si(),
              std::max(batches.overlap->trainer.si(),
                       (batches.overlap->generation.time + batches.time_of(RlPhase::refit)).si()),
              1e-9);
  request.prompts_in_flight = 8;
  EXPECT_THAT(error_text([&] { job_of(request, 8); }), testing::HasSubstr("whole_batches"));
}

// Twice the epochs train twice as long, and change nothing else.
TEST(RlStep, EpochsRepeatTraining) {
  RlRequest request = usual();
  const RlStep once = rl_step(job_of(request, 8));
  request.epochs = 2;
  const RlStep twice = rl_step(job_of(request, 8));
  EXPECT_EQ(twice.job.optimizer_steps, 2 * once.job.optimizer_steps);
  EXPECT_DOUBLE_EQ(twice.time_of(RlPhase::training).si(),
                   2.0 * once.time_of(RlPhase::training).si());
  EXPECT_EQ(twice.time_of(RlPhase::generation), once.time_of(RlPhase::generation));
  EXPECT_EQ(twice.time_of(RlPhase::old_logprobs), once.time_of(RlPhase::old_logprobs));
}

// What a job does not say of its training is as its framework has it.
TEST(RlStep, RecomputationIsTheFrameworks) {
  RlRequest request = usual();
  request.training.recompute = {};
  EXPECT_EQ(job_of(request, 8, "verl-fsdp").training.plan.recompute.kind, Recompute::full);
  EXPECT_EQ(job_of(request, 8, "verl-megatron").training.plan.recompute.kind, Recompute::none);
  parse_training_keys("recompute=none", request, {"", "--training"});
  EXPECT_EQ(job_of(request, 8, "verl-fsdp").training.plan.recompute.kind, Recompute::none);
}

// Refusals of the plan name the options of a loop.
TEST(RlStep, RefusalsOfThePlanNameItsOptions) {
  RlRequest request = usual();
  request.training.cp = 2;
  request.training.fused_attention = false;
  EXPECT_EQ(error_text([&] { job_of(request, 8); }),
            "--training: cp: context parallelism needs fused attention; use attention=flash, or "
            "cp=1");
}

// Equal samples that fill a micro-batch are an ordinary step of sequences of that length.
TEST(RlStep, SamplesOfOneLengthAreAnOrdinaryStep) {
  RlRequest request = usual();
  request.mean_response.reset();
  request.response_length = LengthDistribution{LengthDistribution::Kind::fixed, 1920, 1920};
  request.train_batch.reset();
  const RlJob job = job_of(request, 8, "verl-megatron");
  PlanRequest plain = request.training;
  plain.software = "megatron-core";
  plain.seq = 2048;
  plain.mbs = 1;
  plain.gbs = 128;
  const Scenario scenario = make_scenario(job.model, job.system, plain, 8, {});
  EXPECT_EQ(job.training.plan.seq, 2048);
  EXPECT_EQ(job.batches.count, 16);
  EXPECT_NEAR(estimate(job.training).result.step_time / estimate(scenario).result.step_time, 1.0,
              1e-9);
}

// Ranks that gather shards, or exchange rows of experts, wait for each other in each micro-batch:
// more is waited for than where they meet once a step. Bins of a pipeline are as long as the
// longest.
TEST(RlStep, WhatIsWaitedForDependsOnThePlan) {
  RlRequest request = usual();
  request.packing = SamplePacking::bins;
  request.training.software = "megatron-core";
  const auto useful = [&] { return job_of(request, 8, "verl-fsdp").batches.useful; };
  const double once = useful();
  request.training.software.clear();  // verl-fsdp shards weights unless it is told otherwise.
  EXPECT_EQ(job_of(request, 8, "verl-fsdp").training.plan.zero, 3);
  EXPECT_LT(useful(), once);
  // {9} {6} {7} of ten tokens: a pipeline computes nine in each.
  RlRequest few = usual();
  few.lengths = {{100, 1700}, {100, 1100}, {100, 1300}};
  few.prompt_length.reset();
  few.mean_response.reset();
  few.prompts = 3;
  few.samples = 1;
  few.train_batch.reset();
  few.packing = SamplePacking::bins;
  few.training.tp = 4;
  few.training.pp = 2;
  EXPECT_EQ(job_of(few, 8).batches.tokens, 1800.0);
  few.training.pp = 1;
  few.training.tp = 8;
  EXPECT_NEAR(job_of(few, 8).batches.tokens, 4400.0 / 3.0, 1e-9);
}

TEST(RlStep, WeightsTravelAsTheFrameworkSaysIt) {
  RlRequest request = usual();
  request.rollout_gpus = 4;
  const RlJob job = job_of(request, 8, "verl-megatron");
  EXPECT_FALSE(job.colocated);
  EXPECT_EQ(job.train_gpus, 4);
  const RlStep step = rl_step(job);
  // 8.03 billion parameters in 16 bits; 3 tensors, and 11 of each of 32 layers.
  EXPECT_NEAR(step.weights.si(), 2.0 * 8.03e9, 1e7);
  const WeightTransfer& nccl = job.framework.transfers.at("nccl");
  EXPECT_DOUBLE_EQ(step.time_of(RlPhase::refit).si(),
                   nccl.time(3.0 + 11.0 * 32.0, step.weights).si());
  EXPECT_EQ(step.time_of(RlPhase::moves), Seconds{});
}

TEST(RlStep, MoreGpusAreNeverSlower) {
  Seconds before{1e9};
  for (const int gpus : {8, 16, 32, 64}) {
    const RlStep step = rl_step(job_of(usual(), gpus));
    EXPECT_LE(step.time, before) << gpus;
    before = step.time;
  }
}

// Log-probabilities, a reference and rewards are phases of their own, and nothing else changes.
TEST(RlStep, EachPartAddsItsPhaseAlone) {
  RlRequest request = usual();
  request.reference = false;
  request.old_logprobs = false;
  request.rollout.kv_share = 0.4;
  const RlStep least = rl_step(job_of(request, 8, "verl-megatron"));
  request.reference = true;
  const RlStep with_reference = rl_step(job_of(request, 8, "verl-megatron"));
  const double share = 1.0 + least.job.framework.loop_share;
  EXPECT_NEAR((with_reference.time - least.time).si(),
              share * with_reference.time_of(RlPhase::reference).si(), 1e-9);
  request.reward = Seconds{5.0};
  const RlStep with_reward = rl_step(job_of(request, 8, "verl-megatron"));
  EXPECT_NEAR((with_reward.time - with_reference.time).si(), share * 5.0, 1e-9);
}

TEST(RlStep, OversamplingGeneratesMoreAndTrainsTheSame) {
  RlRequest request = usual();
  const RlStep once = rl_step(job_of(request, 8));
  request.oversampling = 2.0;
  const RlStep twice = rl_step(job_of(request, 8));
  EXPECT_EQ(twice.job.generated.size(), 2 * once.job.generated.size());
  EXPECT_EQ(twice.time_of(RlPhase::training), once.time_of(RlPhase::training));
  EXPECT_GT(twice.time_of(RlPhase::generation), once.time_of(RlPhase::generation));
}

// By turns the engine's weights and the trainer's leave the GPU and come back at the link's rate,
// the optimizer's state at that of pages that are not pinned; for the reference the policy's leave
// and come back, and the reference's come. 8 ranks hold 16.06 GB of weights each, and an eighth of
// 12 bytes a parameter.
TEST(RlStep, CopiesToTheHostAreCounted) {
  const RlJob job = job_of(usual(), 8);
  const RlStep step = rl_step(job);
  const double parameters = 8.03e9;
  const double link = job.system.gpu.host.si(), pages = job.framework.host_copies.si();
  EXPECT_NEAR(step.time_of(RlPhase::moves).si(),
              2.0 * (2.0 * 2.0 * parameters / link + 12.0 * parameters / 8.0 / pages),
              0.01 * step.time_of(RlPhase::moves).si());
  EXPECT_NEAR((step.time_of(RlPhase::reference) - step.time_of(RlPhase::old_logprobs)).si(),
              3.0 * 2.0 * parameters / pages, 0.1);
  // What stays on the GPU does not move, but takes the engine's memory.
  RlRequest request = usual();
  request.free_weights = request.free_optimizer = false;
  request.rollout.kv_share = 0.5;
  const RlStep staying = rl_step(job_of(request, 8));
  EXPECT_NEAR(staying.time_of(RlPhase::moves).si(), 2.0 * 2.0 * parameters / link, 0.1);
  EXPECT_NEAR(staying.memory.left_by_trainer.si(), 2.0 * parameters + 12.0 * parameters / 8.0,
              0.02 * staying.memory.left_by_trainer.si());
  EXPECT_NEAR((staying.memory.rollout - staying.memory.left_by_trainer).si(),
              0.5 * staying.memory.capacity.si(), 1.0);
}

// Adapters beside frozen weights: the reference is the model without them, and no copy of it comes.
TEST(RlStep, AdaptersNeedNoOtherReference) {
  RlRequest request = usual();
  request.training.finetune = Finetune::lora;
  const RlStep step = rl_step(job_of(request, 8));
  EXPECT_EQ(step.time_of(RlPhase::reference), step.time_of(RlPhase::old_logprobs));
}

// A critic takes its passes, its training, and its weights and state in memory.
TEST(RlStep, ACriticIsAPolicyMore) {
  RlRequest request = usual();
  const RlStep alone = rl_step(job_of(request, 8));
  request.algorithm = RlAlgorithm::ppo;
  const RlStep both = rl_step(job_of(request, 8));
  EXPECT_EQ(both.time_of(RlPhase::critic), alone.time_of(RlPhase::training));
  EXPECT_EQ(both.time_of(RlPhase::values), alone.time_of(RlPhase::old_logprobs));
  // Its state waits in the host while the policy is trained, unless it does not leave.
  EXPECT_NEAR((both.memory.training - alone.memory.training).si(), 2.0 * 8.03e9,
              0.02 * 2.0 * 8.03e9);
  request.free_optimizer = false;
  request.rollout.kv_share = 0.5;
  EXPECT_NEAR((rl_step(job_of(request, 8)).memory.training - alone.memory.training).si(),
              (2.0 + 12.0 / 8.0) * 8.03e9, 0.02 * (2.0 + 12.0 / 8.0) * 8.03e9);
}

// A reference that stays takes the policy's weights again, in training and beside the engine: a
// shard of 16 bits with ZeRO-3, all of them with ZeRO-2. Shards do not leave with the optimizer.
TEST(RlStep, ReferencesThatStayAndShardsNeedMemory) {
  RlRequest request = usual();
  request.free_optimizer = true;
  request.rollout.kv_share = 0.3;
  const auto step = [&](int zero, bool reference, int gpus = 8) {
    request.training.zero = zero;
    request.reference = reference;
    return rl_step(job_of(request, gpus, "openrlhf"));
  };
  for (const int gpus : {8, 16})
    EXPECT_NEAR(step(3, false, gpus).memory.left_by_trainer.si(), 2.0 * 8.03e9 / gpus, 0.02e9);
  for (const auto& [zero, weights] : {std::pair{3, 2.0 * 8.03e9 / 8.0}, {2, 2.0 * 8.03e9}}) {
    const RlMemory with = step(zero, true).memory, without = step(zero, false).memory;
    EXPECT_NEAR((with.training - without.training).si(), weights, 0.02 * weights) << zero;
    EXPECT_NEAR((with.rollout - without.rollout).si(), weights, 0.02 * weights) << zero;
  }
}

// Limits of tokens below the longest sample: that sample is a micro-batch of its own.
TEST(RlStep, ALimitOfTokensMayBeBelowTheLongestSample) {
  RlRequest request = usual();
  request.train_tokens = 1024;
  const RlJob job = job_of(request, 8, "verl-megatron");
  EXPECT_GT(job.batches.count, job_of(usual(), 8, "verl-megatron").batches.count);
  EXPECT_EQ(job.fullest.plan.seq, 128 + 1920);
  EXPECT_THAT(error_text([&] { job_of(request, 8); }),
              testing::HasSubstr("does not hold a sample"));
}

// Prices of a thousand samples are those of the GPUs' time.
TEST(RlStep, CostsItsGpusTime) {
  const RlStep step = rl_step(job_of(usual(), 8));
  Economics economics;
  economics.rent_usd_per_gpu_hour = {2.0, 3.0};
  const RlBill bill = rl_bill(step, economics, 100);
  const double hours = 8.0 * step.time.si() / 3600.0;
  EXPECT_NEAR(bill.usd_per_thousand.low, 2.0 * hours * 1000.0 / 128.0, 1e-9);
  EXPECT_NEAR(bill.run_usd.high, 3.0 * hours * 100.0, 1e-6);
  EXPECT_FALSE(bill.kwh_per_thousand.known());
}

TEST(RlStep, WhatDoesNotFitIsRefusedWithAWayOut) {
  RlRequest request = usual();
  request.training.recompute = Recompute::none;
  request.max_response = 16'000;
  request.mean_response = 8'000.0;
  const std::string error = error_text([&] { rl_step(job_of(request, 8)); });
  EXPECT_NE(error.find("--training: the plan does not fit"), std::string::npos) << error;
  EXPECT_TRUE(error.ends_with("; add recompute=full to --training")) << error;
}

// A critic of the policy's size leaves the GPU and comes back, too.
TEST(RlStep, TheCriticIsMovedWithThePolicy) {
  RlRequest request = usual();
  request.free_weights = request.free_optimizer = true;
  const Seconds alone = rl_step(job_of(request, 8)).time_of(RlPhase::moves);
  request.algorithm = RlAlgorithm::ppo;
  const RlStep both = rl_step(job_of(request, 8));
  const Seconds engine = 2.0 * (generator_half(both.job).weights / both.job.system.gpu.host);
  EXPECT_NEAR((both.time_of(RlPhase::moves) - engine).si(), 2.0 * (alone - engine).si(), 1e-9);
}

// Log-probabilities of so many tokens at a time that their logits fit no GPU are refused.
TEST(RlStep, LogitsOfPassesNeedMemory) {
  RlRequest request = usual();
  request.packing = SamplePacking::bins;
  request.training.tp = 2;
  request.pass_tokens = 50000;
  EXPECT_GT(rl_step(job_of(request, 8)).time, Seconds{});
  request.pass_tokens = 400000;
  EXPECT_THROW(rl_step(job_of(request, 8)), Error);
  request.old_logprobs = request.reference = false;
  EXPECT_GT(rl_step(job_of(request, 8)).time, Seconds{});
}

// Rewards are waited for in a synchronous loop alone.
TEST(RlStep, RewardsAreBesideAnAsynchronousRollout) {
  RlRequest request = usual();
  request.reward = Seconds{100.0};
  request.rollout_gpus = 8;
  EXPECT_EQ(rl_step(job_of(request, 16)).time_of(RlPhase::reward).si(), 100.0);
  request.max_staleness = 1;
  EXPECT_EQ(rl_step(job_of(request, 16)).time_of(RlPhase::reward).si(), 0.0);
}

// Chunks of a pipeline take turns in whole rounds: as many micro-batches as its ranks divide.
TEST(RlStep, InterleavedPipelinesHaveWholeRounds) {
  RlRequest request = usual();
  request.training.tp = 2;
  request.training.pp = 4;
  const RlJob plain = job_of(request, 8);
  request.training.vpp = 2;
  const RlJob chunks = job_of(request, 8);
  EXPECT_EQ(chunks.batches.count % 4, 0);
  EXPECT_GE(chunks.batches.count, plain.batches.count);
  EXPECT_NEAR(chunks.batches.tokens * static_cast<double>(chunks.batches.count),
              plain.batches.tokens * static_cast<double>(plain.batches.count), 1e-6 * 1e6);
  EXPECT_GT(rl_step(chunks).time, Seconds{});
}

// A limit that no rank's share reaches needs no memory.
TEST(RlStep, MicroBatchesAreNoLargerThanARanksShare) {
  RlRequest request = usual();
  request.packing = SamplePacking::balanced;
  request.train_tokens = 1'000'000;
  const Bytes peak = rl_step(job_of(request, 8)).memory.training;
  request.train_tokens = 10'000'000;
  EXPECT_EQ(rl_step(job_of(request, 8)).memory.training.si(), peak.si());
}

}  // namespace
}  // namespace orrery::rl_step_test
