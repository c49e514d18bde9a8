#include "sim/formats/recipe/decisive_keys.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/text_file.hpp"
#include "sim/formats/deepspeed/deepspeed_run.hpp"
#include "sim/formats/megatron/megatron_run.hpp"
#include "sim/formats/nanotron/nanotron_run.hpp"
#include "sim/formats/nemo/nemo_run.hpp"
#include "sim/formats/torchtitan/torchtitan_run.hpp"
#include "tests/unit/calibration/sample.hpp"

namespace orrery::decisive_keys_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string file(const std::string& name) {
  return read_text_file(std::string{ORRERY_TEST_SOURCE} + "/tests/unit/formats/" + name);
}

using Answers = std::map<std::string, std::string>;

// A run of each training program with one more setting.
struct Program {
  const char* name;
  ImportedRun (*import)(const std::string& key, const std::string& value, const Answers& set);
};

const std::string megatron = file("megatron/scripts/fp8_on_one_node.sh");
const std::string llama_3b = file("nanotron/configs/llama_3b.yaml");
const std::string gpt_20b = file("nemo/recipes/gpt_20b.yaml");
const std::string llama3_70b = file("torchtitan/jobs/llama3_70b.toml");

RecipeAnswers answers(const Answers& set) { return {"run", std::nullopt, 64, set, {}}; }

// On a command line of words, of which the last is the script's.
std::string with_argument(std::string script, const std::string& flag) {
  script.insert(script.rfind("--"), flag + " ");
  return script;
}

constexpr Program programs[] = {
    {"deepspeed",
     [](const std::string& key, const std::string& value, const Answers& set) {
       return import_deepspeed_run({{"model_name_or_path: Qwen/Qwen3-8B\nmax_seq_length: 2048\n"
                                     "per_device_train_batch_size: 2\nbf16: true\n" +
                                         key + ": " + value + "\n",
                                     "run.yaml"}},
                                   answers(set));
     }},
    {"megatron",
     [](const std::string& key, const std::string& value, const Answers& set) {
       return import_megatron_run(
           MegatronArguments::read(with_argument(megatron, "--" + key + " " + value), "run", set),
           "run", std::nullopt);
     }},
    {"nanotron",
     [](const std::string& key, const std::string& value, const Answers& set) {
       return import_nanotron_run(llama_3b + "\n" + key + ": " + value + "\n", "run", answers(set));
     }},
    {"nemo",
     [](const std::string& key, const std::string& value, const Answers& set) {
       return import_nemo_run(gpt_20b + "\n" + key + ": " + value + "\n", "run", answers(set));
     }},
    {"torchtitan",
     [](const std::string& key, const std::string& value, const Answers& set) {
       return import_torchtitan_run(key + " = '" + value + "'\n" + llama3_70b, "run", answers(set));
     }},
};

// Settings that no program has, one of each subject.
constexpr const char* decisive[] = {"odd_offload_all",       "odd_recompute_part",
                                    "odd_precision_of_sums", "odd_tensor_parallel_size",
                                    "odd_shard_of_weights",  "odd_optimizer_kind",
                                    "odd_seq_length"};

TEST(DecisiveKeys, RefusedByEveryProgramWhereTheyAreOn) {
  for (const Program& program : programs)
    for (const std::string key : decisive) {
      const auto import = [&](const std::string& value, const Answers& set = {}) {
        return refusal_of([&] { program.import(key, value, set); });
      };
      EXPECT_THAT(import("4"), AllOf(HasSubstr(key), HasSubstr("and is not priced"),
                                     HasSubstr("--set " + key + "=null")))
          << program.name;
      EXPECT_EQ(import("false"), "no error") << program.name << " " << key;
      EXPECT_EQ(import("4", {{key, "null"}}), "no error") << program.name << " " << key;
    }
}

TEST(DecisiveKeys, OtherKeysAreNoted) {
  for (const Program& program : programs)
    EXPECT_THAT(program.import("odd_thing", "4", {}).notes,
                testing::Contains(AllOf(HasSubstr("not read:"), HasSubstr("odd_thing"))))
        << program.name;
}

TEST(DecisiveKeys, SubjectsOfNames) {
  EXPECT_EQ(subject_of("pipeline_model_parallel_size"), "parallelism");
  EXPECT_EQ(subject_of("zero_optimization.zero_hpz_partition_size"), "sharding");
  EXPECT_EQ(subject_of("--optimizer-cpu-offload"), "offloading");
  EXPECT_EQ(subject_of("use_distributed_optimizer"), "sharding");
  EXPECT_EQ(subject_of("use_badam"), "the optimizer");
  EXPECT_EQ(subject_of("megatron_fsdp_grad_comm_dtype"), "precision");
  for (const char* other : {"tensorboard_dir", "moe_router_topk", "layernorm_zero_centered_gamma",
                            "use_inference_optimized_layers", "parallel_attention", "cut_short"})
    EXPECT_EQ(subject_of(other), "") << other;
}

// MindSpeed's and Megatron-LM's switches of what is a few of a thousand operations.
TEST(DecisiveKeys, SmallOperationsHaveAnyPrecision) {
  for (const char* name : {"--init-norm-weight-in-fp32", "--rmsnorm-weight-in-fp32",
                           "--router-gating-in-fp32", "--topk-softmax-in-fp32", "--norm-dtype"})
    EXPECT_EQ(subject_of(name), "") << name;
  EXPECT_EQ(subject_of("--recompute-norm"), "recomputation");
  EXPECT_EQ(subject_of("--reuse-fp32-param"), "precision");
}

TEST(DecisiveKeys, WhatAHarmlessBeginningCovers) {
  const std::vector<std::string> harmless = {"fsdp_", "data.", "bf16_full_eval"};
  EXPECT_TRUE(is_covered("fsdp_backward_prefetch", harmless));
  EXPECT_FALSE(is_covered("fsdp_offload_params", harmless));
  EXPECT_TRUE(is_covered("data.seq_length", harmless));
  EXPECT_TRUE(is_covered("bf16_full_eval", harmless));
  EXPECT_FALSE(is_covered("bf16", harmless));
}

TEST(DecisiveKeys, OneRankIsNoParallelism) {
  EXPECT_TRUE(switches_off("tensor_parallel_size", "1"));
  EXPECT_FALSE(switches_off("tensor_parallel_size", "2"));
  EXPECT_FALSE(switches_off("cpu_offload", "1"));
  for (const char* off : {"False", "none", "0", "auto", "null", ""})
    EXPECT_TRUE(switches_off("cpu_offload", off)) << off;
}

}  // namespace
}  // namespace orrery::decisive_keys_test
