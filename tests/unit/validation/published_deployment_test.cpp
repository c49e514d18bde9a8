// Facts known of published measurements of serving complete their rows
// (workloads/publications/serving.json).
#include "sim/validation/published_deployment.hpp"

#include <gtest/gtest.h>

namespace orrery::published_deployment_test {
namespace {

// Prompts of 1,000 tokens from 30 clients.
ServingCase row(const std::string& title, const std::string& model, const std::string& deployment) {
  return read_serving_case(JsonValue::parse(
      R"({"id": "a", "source": {"title": ")" + title + R"(", "locator": "l"}, "system": "dgx-h200",
          "gpus": 1, "model": {"name": ")" +
          model + R"("}, "deployment": )" + deployment +
          R"(, "workload": {"arrival": "closed", "isl": 1000, "osl": 100, "concurrency": 30},
              "measured": {"tpot_ms": 10.0}})",
      "cases.json"));
}

const std::string sweeps = "a sample (NVIDIA aiperf runs)";

TEST(PublishedDeployment, IterationsHoldAPromptAndWhatTheGeneratorLeaves) {
  const ServingCase vllm =
      row(sweeps, "llama3.1-8b", R"({"engine": "vllm", "engine_version": "0.12.0"})");
  EXPECT_EQ(vllm.deployment.budget, 1000 + 30 + 1500);
  EXPECT_FALSE(vllm.deployment.kv);
  // In whole blocks of 32: 2,530 are 79.06 of them.
  const ServingCase trtllm =
      row(sweeps, "llama3.1-8b",
          R"({"engine": "trtllm", "engine_version": "1.0.0rc3", "weight_dtype": "fp8"})");
  EXPECT_EQ(trtllm.deployment.budget, 80 * 32);
  EXPECT_EQ(trtllm.deployment.kv, Dtype::fp8);
  EXPECT_EQ(trtllm.engine, "trtllm-2025");
}

TEST(PublishedDeployment, SglangMixesSinceItsReleaseOfTheNextYear) {
  const auto mixed = [](const char* version) {
    return row(sweeps, "llama3.1-8b",
               std::string{R"({"engine": "sglang", "engine_version": ")"} + version + R"("})")
        .deployment.mixed;
  };
  EXPECT_FALSE(mixed("0.5.1.post1"));
  EXPECT_EQ(mixed("0.5.6.post2"), true);
}

TEST(PublishedDeployment, TheRowItselfCountsMore) {
  const ServingCase one = row(sweeps, "llama3.1-8b",
                              R"({"engine": "trtllm", "weight_dtype": "fp8", "kv_dtype": "bf16",
                                  "max_batched_tokens": 4096})");
  EXPECT_EQ(one.deployment.budget, 4096);
  EXPECT_EQ(one.deployment.kv, Dtype::bf16);
}

TEST(PublishedDeployment, WhatNoRuleKnowsStaysAsItIs) {
  const ServingCase one = row("elsewhere", "llama3.1-8b", R"({"engine": "vllm"})");
  EXPECT_FALSE(one.deployment.budget);
}

// Of Llama 3.1 70B in nvfp4 over 8 stages a cache of 0.95 x (8 x 94.97 - 18.9) GiB, as trtllm-bench
// counts it: 40.6 G numbers of half a byte, 163,840 bytes a token. That are 4.63 M tokens.
TEST(PublishedDeployment, TrtllmBenchSetsItsOwnLimits) {
  const auto limits = [](int input, int output) {
    const ServingCase one = read_serving_case(JsonValue::parse(
        R"({"id": "a", "source": {"title": "TensorRT-LLM performance overview", "locator": "l"},
            "system": "rtx-pro-6000-pcie", "gpus": 8, "model": {"name": "llama3.1-70b"},
            "deployment": {"engine": "trtllm", "engine_version": "1.0", "tp": 1, "pp": 8,
              "weight_dtype": "nvfp4", "kv_dtype": "fp8", "kv_memory_fraction": 0.95},
            "workload": {"arrival": "burst", "requests": 3000, "isl": )" +
            std::to_string(input) + R"(, "osl": )" + std::to_string(output) +
            R"(}, "measured": {"output_tokens_per_s": 1.0}})",
        "cases.json"));
    return std::pair{*one.deployment.max_seqs, *one.deployment.budget};
  };
  using Limits = std::pair<std::int64_t, std::int64_t>;
  // 18,000 requests, of which it takes 4,096: 512 a batch, with as many tokens of prompts.
  EXPECT_EQ(limits(128, 128), (Limits{512, 2048}));
  // 2,315 requests are 289 a batch: 384. 289 x 2 tokens are fewer than its least budget.
  EXPECT_EQ(limits(1000, 1000), (Limits{384, 2048}));
  // 2,127 are 266 a batch, and 266 x 17 tokens: 4,522 in steps of 512.
  EXPECT_EQ(limits(2048, 128), (Limits{384, 4608}));
  // 842 are 105 a batch: 128. The longest prompt has a place as well.
  EXPECT_EQ(limits(5000, 500), (Limits{128, 5128}));
}

// Hopper's cache of GPT-OSS has the checkpoint's 16 bits, whatever the row says, and graphs are
// those of the publication's options.
TEST(PublishedDeployment, OptionsOfTheOverview) {
  const auto of = [](const std::string& system, const char* model) {
    return read_serving_case(JsonValue::parse(
                                 R"({"id": "a",
            "source": {"title": "TensorRT-LLM performance overview", "locator": "l"},
            "system": ")" + system + R"(", "gpus": 1, "model": {"name": ")" +
                                     model + R"("},
            "deployment": {"engine": "trtllm", "engine_version": "1.2", "tp": 1,
              "kv_dtype": "fp8"},
            "workload": {"arrival": "burst", "requests": 3000, "isl": 1000, "osl": 1000},
            "measured": {"output_tokens_per_s": 1.0}})",
                                 "cases.json"))
        .deployment;
  };
  EXPECT_EQ(of("dgx-h100", "gpt-oss-120b").kv, Dtype::bf16);
  EXPECT_EQ(of("dgx-b200", "gpt-oss-120b").kv, Dtype::fp8);
  EXPECT_EQ(of("dgx-h100", "llama3.1-8b").kv, Dtype::fp8);
  for (const char* system : {"dgx-h100", "dgx-b200"})
    EXPECT_EQ(of(system, "gpt-oss-120b").graph_sizes->size(), 15u);
}

// The collection counts data-parallel ranks as tensor-parallel ones.
TEST(PublishedDeployment, PoolsOfDataParallelRanks) {
  const ServingCase one =
      row("SemiAnalysis InferenceX", "kimi-k2",
          R"({"engine": "vllm", "disaggregated": {"prefill": {"tp": 4, "ep": 4, "workers": 1},
                                                  "decode": {"tp": 16, "ep": 16, "workers": 1}}})");
  EXPECT_EQ(one.pools->prefill.tp, 1);
  EXPECT_EQ(one.pools->prefill.dp, 4);
  EXPECT_EQ(one.pools->decode.tp, 1);
  EXPECT_EQ(one.pools->decode.dp, 16);
  EXPECT_EQ(one.pools->decode.ep, 16);
  EXPECT_EQ(one.pools->decode.kv, Dtype::fp8);
}

}  // namespace
}  // namespace orrery::published_deployment_test
