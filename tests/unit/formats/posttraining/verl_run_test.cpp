#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/text_file.hpp"
#include "sim/formats/posttraining/rl_recipe.hpp"
#include "tests/unit/calibration/sample.hpp"
#include "tests/unit/formats/recipe/plan_text.hpp"

namespace orrery::verl_run_test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string script = read_text_file(std::string{ORRERY_TEST_SOURCE} +
                                          "/tests/unit/formats/posttraining/runs/qwen3_8b_grpo.sh");

using Set = std::map<std::string, std::string>;
ImportedRun run_of(const Set& set = {}, const std::string& text = script,
                   const std::string& path = "run.sh") {
  return import_verl_run({text, path}, {"run", std::nullopt, std::nullopt, set, {}});
}
std::string job_of(const Set& set) { return plan_text(run_of(set)); }
std::string refusal(const Set& set, const std::string& text = script) {
  return refusal_of([&] { run_of(set, text); });
}

const std::string actor = "actor_rollout_ref.actor.";

TEST(VerlRun, AScriptWithDefaults) {
  const ImportedRun run = run_of();
  EXPECT_EQ(
      plan_text(run),
      "algorithm=\"grpo\" async_engine=true framework=\"verl-fsdp\" free_optimizer=false "
      "free_weights=false gpus=8 max_response=1024 max_sample=1536 micro_samples=8 "
      "packing=\"fixed\" pass_samples=32 prompts=1024 reference=true rollout={\"budget\":8192,"
      "\"kv_share\":0.6,\"max_length\":1536,\"max_seqs\":256,\"tp\":2} samples=5 "
      "schema=\"orrery.post/1\" train_batch=1280 training={\"attention\":\"flash\",\"cp\":1,"
      "\"dp_overlap\":true,\"dtype\":\"bf16\",\"pp\":1,\"recompute\":\"full\",\"reshard\":true,"
      "\"software\":\"verl-fsdp\",\"sp\":false,\"tp\":1,\"zero\":3}");
  EXPECT_EQ(model_of_run(run).name, "qwen3-8b");
}

TEST(VerlRun, VariablesHaveNoDotAndSettingsHaveOne) {
  EXPECT_THAT(job_of({{"NODES", "4"}}), HasSubstr("gpus=32"));
  EXPECT_THAT(job_of({{"trainer.nnodes", "2"}}), HasSubstr("gpus=16"));
}

// A limit of tokens is of a GPU, and the ranks of Ulysses share a sample.
TEST(VerlRun, LimitsOfTokens) {
  const Set set{{actor + "use_dynamic_bsz", "True"},
                {actor + "ulysses_sequence_parallel_size", "2"},
                {actor + "ppo_max_token_len_per_gpu", "4096"},
                {"actor_rollout_ref.rollout.log_prob_max_token_len_per_gpu", "8192"}};
  const std::string job = job_of(set);
  EXPECT_THAT(job, HasSubstr("packing=\"balanced\""));
  EXPECT_THAT(job, HasSubstr("train_tokens=8192"));
  EXPECT_THAT(job, HasSubstr("pass_tokens=16384"));
  EXPECT_THAT(job, HasSubstr("\"cp\":2,\"cp_comm\":\"a2a\""));
}

TEST(VerlRun, Megatron) {
  const std::string at = actor + "megatron.", own = at + "override_transformer_config.";
  const Set set{
      {actor + "strategy", "megatron"},           {at + "tensor_model_parallel_size", "2"},
      {at + "pipeline_model_parallel_size", "2"}, {at + "param_offload", "True"},
      {at + "optimizer_offload", "True"},         {at + "grad_offload", "True"},
      {own + "recompute_granularity", "full"},    {"actor_rollout_ref.rollout.name", "sglang"}};
  const std::string job = job_of(set);
  EXPECT_THAT(job, HasSubstr("framework=\"verl-megatron\""));
  EXPECT_THAT(job, HasSubstr("engine=\"sglang-2025\""));
  EXPECT_THAT(job, HasSubstr("free_optimizer=true free_weights=true"));
  EXPECT_THAT(job, HasSubstr("\"recompute\":\"full\",\"schedule\":\"1f1b\","
                             "\"software\":\"megatron-core\",\"sp\":true,\"tp\":2"));
  // The name of the configuration says it, too.
  std::string by_name = script;
  by_name.replace(by_name.find("main_ppo"), 8, "main_ppo --config-name=ppo_megatron_trainer.yaml");
  EXPECT_THAT(plan_text(run_of({}, by_name)), HasSubstr("framework=\"verl-megatron\""));
  // Nothing is computed again unless it is asked for.
  EXPECT_THAT(plan_text(run_of({}, by_name)), HasSubstr("\"recompute\":\"none\""));
}

TEST(VerlRun, AlgorithmsAndPasses) {
  EXPECT_THAT(job_of({{"algorithm.adv_estimator", "gae"}}), HasSubstr("algorithm=\"ppo\""));
  EXPECT_THAT(job_of({{actor + "use_kl_loss", "False"}}), HasSubstr("reference=false"));
  EXPECT_THAT(job_of({{actor + "use_kl_loss", "False"}, {"algorithm.use_kl_in_reward", "True"}}),
              HasSubstr("reference=true"));
  EXPECT_THAT(job_of({{"algorithm.rollout_correction.bypass_mode", "True"}}),
              HasSubstr("old_logprobs=false"));
  EXPECT_THAT(job_of({{"data.gen_batch_size", "3072"}}), HasSubstr("oversampling=3.0"));
}

TEST(VerlRun, OneStepOffHasPoolsOfItsOwn) {
  std::string text = script;
  text.replace(text.find("verl.trainer.main_ppo"), 21,
               "verl.experimental.one_step_off_policy.main_ppo");
  const std::string job = plan_text(run_of({{"rollout.n_gpus_per_node", "6"}}, text));
  EXPECT_THAT(job, HasSubstr("gpus=14"));
  EXPECT_THAT(job, HasSubstr("rollout_gpus=6"));
  EXPECT_THAT(job, HasSubstr("max_staleness=1"));
  EXPECT_THAT(job_of({}), Not(HasSubstr("max_staleness")));
}

TEST(VerlRun, TheFirstOfSeveralRunsIsRead) {
  std::string other = script;
  other.replace(other.find("rollout.n=5"), 11, "rollout.n=9");
  const ImportedRun run = run_of({}, script + other);
  EXPECT_THAT(plan_text(run), HasSubstr("samples=5"));
  EXPECT_THAT(run.notes, testing::Contains(HasSubstr("starts several runs")));
}

TEST(VerlRun, LimitsInTheEnginesOwnWords) {
  EXPECT_THAT(job_of({{"actor_rollout_ref.rollout.engine_kwargs.vllm.max_num_seqs", "64"}}),
              HasSubstr("\"max_seqs\":64"));
}

TEST(VerlRun, Epochs) {
  EXPECT_THAT(job_of({{actor + "ppo_epochs", "2"}}), HasSubstr("epochs=2"));
  EXPECT_THAT(job_of({}), Not(HasSubstr("epochs")));
}

TEST(VerlRun, CriticsAreNoted) {
  EXPECT_THAT(run_of({{"algorithm.adv_estimator", "gae"}}).notes,
              testing::Contains(HasSubstr("critic: its settings are not read")));
  EXPECT_THAT(job_of({{"actor_rollout_ref.rollout.response_length", "2048"}}),
              HasSubstr("max_response=2048"));
}

TEST(VerlRun, AConfiguration) {
  const std::string yaml =
      "actor_rollout_ref:\n  model: {path: Qwen/Qwen3-8B}\n  actor:\n"
      "    ppo_micro_batch_size_per_gpu: 4\n  rollout: {n: 8, name: vllm}\n"
      "data: {train_batch_size: 64, max_prompt_length: 1024, max_response_length: "
      "'${data.max_prompt_length}'}\n";
  const std::string job = plan_text(run_of({}, yaml, "run.yaml"));
  EXPECT_THAT(job, HasSubstr("max_sample=2048"));
  EXPECT_THAT(job, HasSubstr("samples=8"));
  EXPECT_THAT(job, Not(HasSubstr("train_batch")));  // 64 prompts are fewer than a mini-batch.
}

TEST(VerlRun, WhatNothingPricesIsRefused) {
  EXPECT_THAT(refusal({}, "echo hello\n"), HasSubstr("starts no trainer of verl"));
  EXPECT_THAT(refusal({}, "python -m verl.experimental.fully_async_policy.fully_async_main a=b\n"),
              HasSubstr("--rollout_gpus, --max_staleness"));
  EXPECT_THAT(refusal({{"actor_rollout_ref.rollout.name", "hf"}}), HasSubstr("write vllm or"));
  EXPECT_THAT(refusal({{actor + "ppo_epochs", "0"}}), HasSubstr("ppo_epochs"));
  EXPECT_THAT(refusal({{actor + "fsdp_config.fsdp_size", "3"}}), HasSubstr("does not divide"));
  EXPECT_THAT(refusal({{"actor_rollout_ref.model.path", "a/b"}}), HasSubstr("not in the catalog"));
  EXPECT_THAT(refusal({{"algorithm.adv_estimator", "zzz"}}), HasSubstr("which is unknown"));
  EXPECT_THAT(refusal({{actor + "ppo_mini_batch_size", "2048"}}), HasSubstr("write a divisor"));
  EXPECT_THAT(refusal({{"data.gen_batch_size", "10"}}), HasSubstr("generate at least as many"));
  EXPECT_THAT(refusal({{actor + "fsdp_config.fsdp_size", "-7"}}), HasSubstr("write -1"));
  EXPECT_THAT(refusal({{"actor_rollout_ref.model.override_config.num_hidden_layers", "4"}}),
              HasSubstr("changes the model's config.json"));
  const auto with = [](const std::string& words) {
    std::string text = script;
    return text.replace(text.find("trainer.n_gpus"), 0, words + " ");
  };
  EXPECT_THAT(refusal({}, with("'actor_rollout_ref.rollout={top_k:50}'")),
              HasSubstr("is a map, which is not read"));
  EXPECT_THAT(refusal({}, with("~algorithm")), HasSubstr("takes a default away"));
  EXPECT_THAT(refusal({{actor + "new_parallel_size", "4"}}), HasSubstr("decides parallelism"));
  std::string text = script;
  text.replace(text.find("ppo_micro_batch_size_per_gpu=8"), 30, "ppo_max_token_len_per_gpu=9");
  EXPECT_THAT(refusal({}, text), HasSubstr("says no micro-batch"));
}

}  // namespace
}  // namespace orrery::verl_run_test
