// Facts known of publications complete and correct their rows (workloads/publications).
#include <gtest/gtest.h>

#include "sim/validation/training_case.hpp"

namespace orrery::as_published_test {
namespace {

TrainingCase row(const std::string& title, const std::string& id, const std::string& model,
                 const std::string& plan) {
  TrainingCase one{id,
                   title,
                   "table 1",
                   "dgx-h100",
                   64,
                   JsonValue::parse(model, "model"),
                   JsonValue::parse(plan, "plan"),
                   {},
                   {},
                   {},
                   {},
                   {}};
  return one;
}

std::string of(const TrainingCase& one, const char* key) {
  const JsonValue plan = as_published(one).plan;
  const auto value = plan.find(key);
  return !value ? "-" : value->is_string() ? value->text() : value->compact();
}

TEST(AsPublished, EachLayerAChunk) {
  const auto chunks = [](int layers, int stages) {
    return of(row("MoE Parallel Folding (Megatron Core)", "a",
                  R"({"layers": )" + std::to_string(layers) + "}",
                  R"({"schedule": "1f1b", "pp": )" + std::to_string(stages) + "}"),
              "vpp");
  };
  EXPECT_EQ(chunks(56, 8), "7");
  EXPECT_EQ(chunks(80, 16), "5");
  EXPECT_EQ(chunks(22, 8), "3");  // The last stages hold one less.
  const std::string word = "max (each layer a chunk)";
  const TrainingCase said =
      row("A paper", "a", R"({"layers": 30})", R"({"pp": 8, "vpp": ")" + word + "\"}");
  EXPECT_EQ(of(said, "vpp"), "4");
}

TEST(AsPublished, TheFewestChunksWherePipelinesAreInterleaved) {
  const auto chunks = [](int layers, int stages) {
    return of(row("Megatron-LM README model table (Megatron-Core r0.8.0, H100, 2024-07)", "a",
                  R"({"layers": )" + std::to_string(layers) + "}",
                  R"({"schedule": "1f1b", "pp": )" + std::to_string(stages) + "}"),
              "vpp");
  };
  EXPECT_EQ(chunks(84, 2), "2");
  EXPECT_EQ(chunks(60, 4), "3");
  EXPECT_EQ(chunks(92, 4), "23");
  EXPECT_EQ(chunks(24, 1), "-");
}

TEST(AsPublished, TheFirstStagesHaveOneMore) {
  const auto split = [](int layers, int stages) {
    return of(row("DeepSeek-V2", "a", R"({"layers": )" + std::to_string(layers) + "}",
                  R"({"pp": )" + std::to_string(stages) + "}"),
              "layers");
  };
  EXPECT_EQ(split(60, 16), "4x12+3x4");
  EXPECT_EQ(split(80, 32), "3x16+2x16");
  EXPECT_EQ(split(64, 16), "4x16");
}

TEST(AsPublished, SoftwareThatStoodInIsReplaced) {
  const std::string plan = R"({"software": "megatron-deepspeed-2022", "dtype": "bf16"})";
  EXPECT_EQ(of(row("BLOOM-176B (BigScience)", "a", "{}", plan), "software"),
            "megatron-deepspeed-bf16");
  EXPECT_EQ(of(row("A paper", "a", "{}", plan), "software"), "megatron-deepspeed-2022");
  // An early test, in another format.
  EXPECT_EQ(of(row("BLOOM-176B (BigScience)", "a", "{}",
                   R"({"software": "megatron-deepspeed-2022", "dtype": "fp16"})"),
               "software"),
            "megatron-deepspeed-2022");
}

TEST(AsPublished, AShapeIsCompletedButNotChanged) {
  const char* const title = "Qi et al., Zero Bubble Pipeline Parallelism (ICLR 2024)";
  const auto vocabulary = [&](const std::string& model) {
    return as_published(row(title, "zerobubble-1.5B-ZB-2p", model, "{}"))
        .model.at("vocab")
        .integer(1, 1 << 20);
  };
  EXPECT_EQ(vocabulary(R"({"layers": 22})"), 32000);
  EXPECT_EQ(vocabulary(R"({"layers": 22, "vocab": 50257})"), 50257);
}

}  // namespace
}  // namespace orrery::as_published_test
