#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/text_file.hpp"
#include "sim/formats/posttraining/rl_recipe.hpp"
#include "tests/unit/calibration/sample.hpp"
#include "tests/unit/formats/recipe/plan_text.hpp"

namespace orrery::nemo_rl_run_test {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// A recipe for two nodes, which goes on from one with the settings of the software.
const std::string runs = std::string{ORRERY_TEST_SOURCE} + "/tests/unit/formats/posttraining/runs/";
const std::string base = read_text_file(runs + "base.yaml");
const std::string recipe = read_text_file(runs + "llama_8b_two_nodes.yaml");

using Set = std::map<std::string, std::string>;
RecipeAnswers answers_of(const Set& set) {
  RecipeAnswers answers{"run", std::nullopt, std::nullopt, set, {}};
  answers.other_file = [](const std::string& path) {
    return path == "recipes/base.yaml" ? std::optional{base} : std::nullopt;
  };
  return answers;
}
ImportedRun run_of(const Set& set = {}, const std::string& text = recipe) {
  return import_nemo_rl_run({text, "recipes/run.yaml"}, answers_of(set));
}
std::string job_of(const Set& set) { return plan_text(run_of(set)); }
std::string refusal(const Set& set, const std::string& text = recipe) {
  return refusal_of([&] { run_of(set, text); });
}

TEST(NemoRlRun, ARecipeWithWhatItGoesOnFrom) {
  const ImportedRun run = run_of();
  EXPECT_EQ(
      plan_text(run),
      "algorithm=\"grpo\" async_engine=false framework=\"nemo-rl\" gpus=16 max_sample=4096 "
      "packing=\"bins\" pass_tokens=8192 prompts=64 reference=true rollout={\"kv_share\":0.6,"
      "\"max_length\":4096,\"tp\":1} samples=32 schema=\"orrery.post/1\" train_batch=512 "
      "train_tokens=4096 training={\"attention\":\"flash\",\"cp\":1,\"dp_overlap\":true,\"dtype\":"
      "\"bf16\",\"pp\":2,\"recompute\":\"full\",\"schedule\":\"1f1b\",\"software\":"
      "\"megatron-core\",\"sp\":false,\"tp\":1,\"zero\":1}");
  EXPECT_EQ(model_of_run(run).name, "llama3.1-8b");
  EXPECT_THAT(run.notes, Contains(HasSubstr("lengths are not in the file")));
}

TEST(NemoRlRun, PoolsOfTheirOwnAndSteps) {
  const Set set{{"policy.generation.colocated.enabled", "false"},
                {"policy.generation.colocated.resources.num_nodes", "1"},
                {"policy.generation.colocated.resources.gpus_per_node", "8"},
                {"policy.generation.vllm_cfg.async_engine", "true"},
                {"grpo.async_grpo.enabled", "true"},
                {"grpo.async_grpo.max_trajectory_age_steps", "2"},
                {"grpo.async_grpo.in_flight_weight_updates", "true"}};
  const std::string job = job_of(set);
  EXPECT_THAT(job, HasSubstr("gpus=16"));
  EXPECT_THAT(job, HasSubstr("rollout_gpus=8"));
  EXPECT_THAT(job, HasSubstr("max_staleness=2"));
  EXPECT_THAT(job, HasSubstr("in_flight_updates=true"));
  // Within one node the number of GPUs counts.
  Set one = set;
  one["cluster.num_nodes"] = "1";
  one["policy.megatron_cfg.pipeline_model_parallel_size"] = "1";
  one["policy.generation.colocated.resources.gpus_per_node"] = "6";
  EXPECT_THAT(job_of(one), HasSubstr("rollout_gpus=6"));
  one["policy.generation.colocated.resources.gpus_per_node"] = "8";
  EXPECT_THAT(refusal(one), HasSubstr("leaves none of 8 GPUs to the trainer"));
}

TEST(NemoRlRun, Passes) {
  EXPECT_THAT(job_of({{"loss_fn.force_on_policy_ratio", "true"}}), HasSubstr("old_logprobs=false"));
  // A threshold of errors needs the trainer's own log-probabilities.
  EXPECT_THAT(job_of({{"loss_fn.force_on_policy_ratio", "true"},
                      {"grpo.seq_logprob_error_threshold", "2"}}),
              Not(HasSubstr("old_logprobs")));
  EXPECT_THAT(job_of({{"grpo.skip_reference_policy_logprobs_calculation", "true"}}),
              HasSubstr("reference=false"));
}

TEST(NemoRlRun, MicroBatchesByTokensOrBySamples) {
  const std::string job = job_of(
      {{"policy.sequence_packing.enabled", "false"}, {"policy.train_micro_batch_size", "4"}});
  EXPECT_THAT(job, HasSubstr("packing=\"padded\""));
  EXPECT_THAT(job, HasSubstr("micro_samples=4"));
  EXPECT_THAT(job, HasSubstr("pass_samples=2"));
  // References follow the answers.
  EXPECT_THAT(job_of({{"policy.max_total_sequence_length", "8192"}}),
              HasSubstr("train_tokens=8192"));
}

TEST(NemoRlRun, OuterStages) {
  EXPECT_THAT(job_of({{"policy.megatron_cfg.pipeline_model_parallel_size", "4"},
                      {"policy.megatron_cfg.num_layers_in_first_pipeline_stage", "7"},
                      {"policy.megatron_cfg.num_layers_in_last_pipeline_stage", "5"}}),
              HasSubstr("\"layers\":\"7+10x2+5\""));
  EXPECT_THAT(refusal({{"policy.megatron_cfg.pipeline_model_parallel_size", "4"},
                       {"policy.megatron_cfg.num_layers_in_first_pipeline_stage", "6"},
                       {"policy.megatron_cfg.num_layers_in_last_pipeline_stage", "5"}}),
              HasSubstr("leaves 21 layers to 2 stages"));
}

TEST(NemoRlRun, WhatNothingPricesIsRefused) {
  EXPECT_THAT(refusal({{"policy.generation.backend", "sglang"}}),
              HasSubstr("policy.generation.backend is 'sglang'"));
  EXPECT_THAT(refusal({}, "sft: {max_num_epochs: 1}\npolicy: {}\n"),
              HasSubstr("a recipe without a rollout"));
  EXPECT_THAT(refusal({}, "defaults: there.yaml\n"), HasSubstr("goes on from 'there.yaml'"));
  EXPECT_THAT(refusal({}, "policy: {}\n"), HasSubstr("has no section grpo or ppo"));
  EXPECT_THAT(refusal({{"policy.model_name", "a/b"}}), HasSubstr("not in the catalog"));
  EXPECT_THAT(refusal({{"policy.precision", "float16"}}), HasSubstr("has no prices"));
  EXPECT_THAT(refusal({{"policy.new_parallel_size", "4"}}),
              HasSubstr("policy.new_parallel_size decides parallelism"));
  EXPECT_THAT(refusal({}, "grpo: {}\n"), HasSubstr("has no policy.model_name"));
  EXPECT_THAT(refusal({}, "grpo: 3\npolicy: {model_name: Qwen/Qwen3-8B}\n"),
              HasSubstr("grpo is no section of settings"));
  EXPECT_THAT(refusal({}, "defaults: {a: b}\n"), HasSubstr("defaults is a map"));
  EXPECT_THAT(refusal({{"policy.sequence_packing.train_mb_tokens", "-1"}}),
              HasSubstr("train_mb_tokens is -1"));
  EXPECT_THAT(refusal({{"policy.generation.max_new_tokens", "0"}}),
              HasSubstr("max_new_tokens is 0"));
  EXPECT_THAT(refusal({{"grpo.async_grpo.enabled", "true"}}),
              HasSubstr("give the engine GPUs of its own"));
  EXPECT_THAT(refusal({{"policy.hf_config_overrides.num_hidden_layers", "2"}}),
              HasSubstr("changes the model's config.json"));
  // The line is that of the file that has the setting.
  const std::string wrong = "defaults: base.yaml\ncluster: {num_nodes: 0}\n";
  EXPECT_THAT(refusal({}, wrong), HasSubstr("recipes/run.yaml: line 2: cluster.num_nodes is 0"));
  EXPECT_THAT(refusal_of([] {
                RecipeAnswers answers = answers_of({});
                answers.other_file = [](const std::string&) {
                  return std::optional<std::string>{
                      "grpo:\n  num_prompts_per_step: many\npolicy: {model_name: Qwen/Qwen3-8B}\n"};
                };
                import_nemo_rl_run({recipe, "recipes/run.yaml"}, answers);
              }),
              HasSubstr("recipes/base.yaml: line 2: grpo.num_prompts_per_step is 'many'"));
}

TEST(NemoRlRun, TurnsAreNotedWhereThereAreSeveral) {
  const auto notes = [](const char* turns) {
    return run_of({{"grpo.max_rollout_turns", turns}}).notes;
  };
  EXPECT_THAT(notes("5"), Contains(HasSubstr("has several turns")));
  EXPECT_THAT(notes("1"), Not(Contains(HasSubstr("has several turns"))));
}

TEST(LayeredSettings, LaterLayersWin) {
  RecipeAnswers answers{"run", std::nullopt, std::nullopt, {{"d.x", "9"}}, {}};
  answers.other_file = [](const std::string& path) -> std::optional<std::string> {
    if (path == "a.yaml") return "a: {x: 1, y: 2}\nb: [1, 2]\nc: {x: 1, y: 2}\n";
    if (path == "b.yaml") return "defaults: a.yaml\na: {y: 3}\nd: {x: 1}\n";
    return std::nullopt;
  };
  const Settings s = read_layered_settings(
      {"defaults: [a.yaml, b.yaml]\nb: [7]\nc: {_override_: true, x: 5}\ne: ${a.y}\n", "c.yaml"},
      answers);
  EXPECT_EQ(s.number("a.x", 0), 1);
  EXPECT_EQ(s.number("a.y", 0), 3);
  EXPECT_EQ(s.words("b"), std::vector<std::string>{"7"});
  EXPECT_EQ(s.number("c.x", 0), 5);
  EXPECT_FALSE(s.has("c.y"));
  EXPECT_EQ(s.number("d.x", 0), 9);
  EXPECT_EQ(s.number("e", 0), 3);
}

TEST(LayeredSettings, FilesThatNameEachOtherAreRefused) {
  RecipeAnswers answers{"run", std::nullopt, std::nullopt, {}, {}};
  answers.other_file = [](const std::string&) -> std::optional<std::string> {
    return "defaults: self.yaml\n";
  };
  EXPECT_THAT(refusal_of([&] {
                read_layered_settings({"defaults: self.yaml\n", "self.yaml"}, answers);
              }),
              HasSubstr("defaults name more than 20 files in turn"));
}

}  // namespace
}  // namespace orrery::nemo_rl_run_test
