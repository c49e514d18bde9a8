#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/text_file.hpp"
#include "sim/formats/posttraining/rl_recipe.hpp"
#include "tests/unit/calibration/sample.hpp"
#include "tests/unit/formats/recipe/plan_text.hpp"

namespace orrery::openrlhf_run_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

const std::string script = read_text_file(std::string{ORRERY_TEST_SOURCE} +
                                          "/tests/unit/formats/posttraining/runs/dapo_openrlhf.sh");

ImportedRun run_of(std::map<std::string, std::string> set, const std::string& text = script) {
  return import_openrlhf_run({text, "run.sh"},
                             {"run", std::nullopt, std::nullopt, std::move(set), {}});
}

std::string job_of(std::map<std::string, std::string> set) { return plan_text(run_of(set)); }

std::string refusal(std::map<std::string, std::string> set, const std::string& text = script) {
  return refusal_of([&] { run_of(set, text); });
}

// The script's flags with other names and an option for each change.
std::string with_options(const std::string& more) {
  std::string text = script;
  return text.replace(text.find(" --ckpt.save_steps"), 0, " " + more);
}

TEST(OpenRlhfRun, AColocatedLoop) {
  const std::string job = job_of({});
  for (const char* said :
       {"framework=\"openrlhf\"", "gpus=8", "algorithm=\"grpo\"", "reference=true", "prompts=128",
        "samples=8", "train_batch=256", "max_response=3072", "max_sample=4096", "packing=\"fixed\"",
        "micro_samples=8", "pass_samples=16", "free_optimizer=true", "free_weights=false",
        "\"kv_share\":0.6", "\"tp\":2", "\"zero\":3", "\"recompute\":\"full\"",
        "\"software\":\"openrlhf\""})
    EXPECT_THAT(job, HasSubstr(said));
  EXPECT_THAT(job, Not(HasSubstr("rollout_gpus")));
  EXPECT_THAT(run_of({}).notes, Contains(HasSubstr("prefix caching is off")));
  EXPECT_THAT(run_of({}).notes, Not(Contains(HasSubstr("not read"))));
}

// Releases before 0.10.2 wrote the same with underscores.
TEST(OpenRlhfRun, OldNamesMeanTheSame) {
  std::string old = script;
  for (const auto& [now, before] : std::vector<std::pair<std::string, std::string>>{
           {"actor.model_name_or_path", "pretrain"},
           {"actor.num_nodes", "actor_num_nodes"},
           {"actor.num_gpus_per_node", "actor_num_gpus_per_node"},
           {"reward.remote_url", "remote_rm_url"},
           {"train.colocate_all", "colocate_all_models"},
           {"vllm.num_engines", "vllm_num_engines"},
           {"vllm.tensor_parallel_size", "vllm_tensor_parallel_size"},
           {"vllm.gpu_memory_utilization", "vllm_gpu_memory_utilization"},
           {"vllm.enable_sleep", "vllm_enable_sleep"},
           {"ds.enable_sleep", "deepspeed_enable_sleep"},
           {"ds.zero_stage", "zero_stage"},
           {"ds.packing_samples", "packing_samples"},
           {"actor.gradient_checkpointing_enable", "gradient_checkpointing"},
           {"algo.advantage.estimator", "advantage_estimator"},
           {"algo.kl.init_coef", "init_kl_coef"},
           {"rollout.batch_size", "rollout_batch_size"},
           {"rollout.n_samples_per_prompt", "n_samples_per_prompt"},
           {"rollout.micro_batch_size", "micro_rollout_batch_size"},
           {"train.batch_size", "train_batch_size"},
           {"train.micro_batch_size", "micro_train_batch_size"},
           {"data.max_len", "max_len"},
           {"rollout.max_new_tokens", "max_new_tokens"}})
    old.replace(old.find("--" + now + " ") + 2, now.size(), before);
  EXPECT_EQ(plan_text(run_of({}, old)), job_of({}));
  EXPECT_THAT(plan_text(run_of({{"rollout.max_new_tokens", "2048"}},
                               with_options("--prompt_max_len 1024 --generate_max_len 2048"))),
              HasSubstr("max_sample=3072"));
}

// A variable of the script is no option.
TEST(OpenRlhfRun, VariablesOfTheScript) {
  const std::map<std::string, std::string> set{
      {"GPUS", "16"}, {"ref.num_gpus_per_node", "16"}, {"vllm.num_engines", "8"}};
  EXPECT_THAT(job_of(set), HasSubstr("gpus=16"));
  EXPECT_THAT(run_of(set).notes, Not(Contains(HasSubstr("not read"))));
}

// gae is PPO with a critic; without a coefficient there is no reference.
TEST(OpenRlhfRun, AlgorithmsAndTheirModels) {
  EXPECT_THAT(job_of({{"algo.advantage.estimator", "gae"}}), HasSubstr("algorithm=\"ppo\""));
  EXPECT_THAT(job_of({{"algo.kl.init_coef", "0"}}), HasSubstr("reference=false"));
  EXPECT_THAT(job_of({{"train.max_epochs", "2"}}), HasSubstr("epochs=2"));
}

TEST(OpenRlhfRun, JudgesThatAreModels) {
  EXPECT_THAT(run_of({{"reward.remote_url", "http://judge:5000/get"}}).notes,
              Contains(HasSubstr("scored by a server")));
  EXPECT_THAT(run_of({}).notes, Not(Contains(HasSubstr("scored by"))));
}

TEST(OpenRlhfRun, GpusOfTheirOwn) {
  const std::string apart = with_options("--train.colocate_actor_ref --vllm.num_engines 2");
  std::string job = plan_text(run_of({{"train.colocate_all", "false"}}, apart));
  EXPECT_THAT(job, HasSubstr("gpus=12"));
  EXPECT_THAT(job, HasSubstr("rollout_gpus=4"));
  EXPECT_THAT(job, Not(HasSubstr("max_staleness")));
  job = plan_text(run_of({}, with_options("--train.async_enable --train.async_queue_size 2")));
  EXPECT_THAT(job, HasSubstr("gpus=16"));
  EXPECT_THAT(job, HasSubstr("rollout_gpus=8"));
  EXPECT_THAT(job, HasSubstr("max_staleness=2"));
  EXPECT_THAT(job, Not(HasSubstr("in_flight_updates")));
  EXPECT_THAT(
      plan_text(run_of({}, with_options("--train.async_enable --train.partial_rollout_enable"))),
      HasSubstr("in_flight_updates=true"));
}

TEST(OpenRlhfRun, MicroBatches) {
  const std::string job =
      job_of({{"train.dynamic_batch_enable", "true"}, {"train.max_tokens_per_gpu", "16384"}});
  EXPECT_THAT(job, HasSubstr("packing=\"balanced\""));
  EXPECT_THAT(job, HasSubstr("train_tokens=16384"));
  EXPECT_THAT(job_of({{"train.dynamic_batch_enable", "true"}, {"ds.ring_attn_size", "2"}}),
              HasSubstr("train_tokens=32384"));
  EXPECT_THAT(job_of({{"ds.packing_samples", "false"}}), HasSubstr("packing=\"padded\""));
}

TEST(OpenRlhfRun, WhatNothingPricesIsRefused) {
  EXPECT_THAT(refusal({}, "echo hello\n"), HasSubstr("starts no loop of OpenRLHF"));
  EXPECT_THAT(refusal({{"ds.ring_attn_size", "3"}}), HasSubstr("does not divide 8 GPUs"));
  EXPECT_THAT(refusal({{"ds.tensor_parallel_size", "2"}}),
              HasSubstr("--set ds.tensor_parallel_size=1"));
  EXPECT_THAT(refusal({{"train.batch_size", "300"}}), HasSubstr("does not divide the 1,024"));
  EXPECT_THAT(refusal({{"train.colocate_all", "false"}}), HasSubstr("GPUs of its own"));
  EXPECT_THAT(refusal({{"vllm.num_engines", "3"}}),
              HasSubstr("the engines 6 GPUs and the actor has 8"));
  EXPECT_THAT(refusal({{"algo.advantage.estimator", "zzz"}}), HasSubstr("zzz"));
  EXPECT_THAT(refusal({{"rollout.max_new_tokens", "4096"}}), HasSubstr("raise data.max_len"));
  EXPECT_THAT(refusal({{"algo.kl.init_coef", "x"}}), HasSubstr("is no number"));
}

}  // namespace
}  // namespace orrery::openrlhf_run_test
