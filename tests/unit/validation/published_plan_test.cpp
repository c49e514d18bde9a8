#include <gtest/gtest.h>

#include <filesystem>

#include "sim/validation/training_case.hpp"

namespace orrery::published_plan_test {
namespace {

TrainingCase row(const std::string& release, const std::string& model, const std::string& system,
                 const std::string& plan) {
  const std::string place =
      "docs/performance-summary.md release " + release + ", Pre-Training, line 1";
  return {"mbridge-arch-" + release + "-L1",
          "NVIDIA Megatron-Bridge performance summary",
          place,
          system,
          8,
          JsonValue::parse(R"({"name": ")" + model + "\"}", "model"),
          JsonValue::parse(plan, "plan"),
          {},
          {},
          {},
          {},
          {}};
}

std::string last(const TrainingCase& one, const char* key) {
  const PublishedPlan published = published_plan(one);
  if (published.plans.empty()) return "no plan";
  const auto value = published.plans.back().find(key);
  return !value ? "-" : value->is_string() ? value->text() : value->compact();
}

const std::string gpt_oss_ep8 =
    R"({"tp": 1, "pp": 1, "vpp": 1, "ep": 8, "mbs": 4, "gbs": 1280, "dtype": "bf16"})";

// B200's preset of that batch is of ep 64 with an all-to-all up to 26.02.01, and of ep 8 with
// Hybrid-EP in 26.04.
TEST(PublishedPlan, APrintedLayoutIsOfItsReleaseOrOfTheNext) {
  EXPECT_EQ(last(row("26.04.01", "GPT OSS 120B", "dgx-b200", gpt_oss_ep8), "moe_dispatcher"),
            "hybridep");
  EXPECT_EQ(last(row("26.02.01", "GPT OSS 120B", "dgx-b200", gpt_oss_ep8), "moe_dispatcher"),
            "hybridep");
  EXPECT_EQ(last(row("26.06", "GPT OSS 120B", "dgx-b200", gpt_oss_ep8), "moe_dispatcher"),
            "alltoall");
}

// A layout of an older preset is what a table was not updated with: the release's own keys count.
TEST(PublishedPlan, AnOlderLayoutGetsTheKeysOfTheRelease) {
  const std::string qwen =
      R"({"tp": 1, "pp": 2, "vpp": 12, "ep": 8, "mbs": 1, "gbs": 1024, "dtype": "fp8"})";
  EXPECT_EQ(last(row("26.02", "Qwen3_30B_a3B", "dgx-h100", qwen), "moe_dispatcher"), "deepep");
  EXPECT_EQ(last(row("26.02.01", "Qwen3_30B_a3B", "dgx-h100", qwen), "moe_dispatcher"), "hybridep");
}

TEST(PublishedPlan, KeysThatRunsWereRefusedWithout) {
  const auto offloaded = row(
      "26.04", "LLAMA3_70B", "gb200-nvl72",
      R"({"tp": 1, "pp": 1, "vpp": 1, "cp": 1, "mbs": 2, "gbs": 256, "dtype": "fp8", "ep": 1})");
  EXPECT_EQ(last(offloaded, "zero"), "3");
  EXPECT_EQ(last(offloaded, "offload_layers"), "40");
  const auto first =
      row("25.09", "LLAMA3.1_405B", "gb200-nvl72",
          R"({"tp": 2, "pp": 1, "vpp": 1, "cp": 1, "mbs": 1, "gbs": 64, "dtype": "fp8", "ep": 1})");
  EXPECT_EQ(last(first, "offload_layers"), "95");
}

TEST(PublishedPlan, FusedExpertsAreASoftwareOfTheirOwn) {
  const auto of = row("26.06.01", "Qwen3_30B_a3B", "gb300-nvl72",
                      R"({"ep": 8, "mbs": 8, "gbs": 512, "dtype": "mxfp8"})");
  EXPECT_EQ(published_plan(of).software, "megatron-bridge-fused-experts");
  EXPECT_EQ(last(of, "cuda_graphs"), "step");
}

TEST(PublishedPlan, OtherSourcesStayAsTheyAre) {
  TrainingCase one = row("26.04", "GPT OSS 120B", "dgx-b200", gpt_oss_ep8);
  one.title = "A blog";
  const PublishedPlan published = published_plan(one);
  EXPECT_EQ(published.software, "");
  EXPECT_TRUE(published.plans.empty());
}

}  // namespace
}  // namespace orrery::published_plan_test
