// What is known of published measurements of serving completes their rows
// (workloads/publications/serving.json).
#include "sim/analysis/cases/published_deployment.hpp"

#include <gtest/gtest.h>

namespace orrery {
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
  EXPECT_EQ(trtllm.deployment.kv, KvFormat::fp8);
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
  EXPECT_EQ(one.deployment.kv, KvFormat::bf16);
}

TEST(PublishedDeployment, WhatNoRuleKnowsStaysAsItIs) {
  const ServingCase one = row("elsewhere", "llama3.1-8b", R"({"engine": "vllm"})");
  EXPECT_FALSE(one.deployment.budget);
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
  EXPECT_EQ(one.pools->decode.kv, KvFormat::fp8);
}

}  // namespace
}  // namespace orrery
