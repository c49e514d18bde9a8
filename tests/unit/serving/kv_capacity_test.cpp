#include "sim/serving/kv_capacity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::kv_capacity_test {
namespace {

struct Served {
  Model model;
  System system;
  ServingEngine engine;
  Deployment plan;
};

Served served(const std::string& model, const std::string& system, const std::string& engine,
              const DeploymentRequest& request, int gpus) {
  Served one{read_model(model, {}), read_system(system, {}), read_serving_engine(engine, {}), {}};
  one.plan = make_deployment(one.model, one.system, one.engine, request, gpus, {});
  return one;
}

double bytes_of(const std::string& model, int tp, Dtype kv = Dtype::bf16) {
  DeploymentRequest request;
  request.tp = tp;
  request.kv = kv;
  const Served one = served(model, "dgx-h200", "vllm", request, tp);
  return kv_bytes_per_token(one.model, one.plan);
}

TEST(KvCapacity, BytesOfATokenAreExact) {
  // Layers x keys and values x heads x head size x 2 bytes.
  EXPECT_EQ(bytes_of("qwen3-32b", 1), 64 * 2 * 8 * 128 * 2);     // 262,144
  EXPECT_EQ(bytes_of("llama3.1-70b", 1), 80 * 2 * 8 * 128 * 2);  // 327,680
  EXPECT_EQ(bytes_of("llama3.1-70b", 4), 80 * 2 * 2 * 128 * 2);  // a quarter
  EXPECT_EQ(bytes_of("llama3.1-70b", 1, Dtype::fp8), 163'840);   // half
  // Latent attention: rank 512 and 64 of position, on every rank.
  EXPECT_EQ(bytes_of("deepseek-v3", 1), 61 * 576 * 2);  // 70,272
  EXPECT_EQ(bytes_of("deepseek-v3", 8), 61 * 576 * 2);
}

TEST(KvCapacity, KeyHeadsAreCopiedWhereThereAreMoreRanks) {
  // Four key heads over eight ranks: one each.
  EXPECT_EQ(bytes_of("qwen3-30b-a3b", 8), bytes_of("qwen3-30b-a3b", 4));
}

TEST(KvCapacity, WindowedLayersAreAllottedInGroups) {
  // Gemma 3 27B: 52 local and 10 global layers in groups of 10, so that the locals' last group is
  // filled up: 70 layers of 16 heads of 128 (vLLM 0.19 reports 573,440 bytes a token).
  EXPECT_EQ(bytes_of("gemma-3-27b", 1), 70 * 2 * 16 * 128 * 2);
  // gpt-oss: 12 and 12, nothing to fill up.
  EXPECT_EQ(bytes_of("gpt-oss-20b", 1), 24 * 2 * 8 * 64 * 2);
}

// Llama 3.1 8B: 32 layers of 4096 x (4096 + 2 x 1024) and 4096 x 4096 for attention, and three
// matrices of 4096 x 14,336; embedding and head of 128,256 words stay in 16 bits.
TEST(KvCapacity, Nf4HoldsLinearLayersAlone) {
  const auto weights = [](const char* engine, Dtype format) {
    DeploymentRequest request;
    request.weights = format;
    const Served one = served("llama3.1-8b", "dgx-h100", engine, request, 1);
    return rank_weights(one.model, one.plan).si();
  };
  constexpr double linear =
      32.0 * (4096.0 * (4096 + 2 * 1024) + 4096.0 * 4096 + 3.0 * 4096 * 14336);
  constexpr double others = 2.0 * 2.0 * 128256 * 4096;
  EXPECT_EQ(linear, 6'979'321'856.0);
  EXPECT_DOUBLE_EQ(weights("vllm", Dtype::nf4), 4.5 / 8 * linear + others);
  EXPECT_DOUBLE_EQ(weights("sglang", Dtype::nf4_dq), 4.126953125 / 8 * linear + others);
}

TEST(KvCapacity, WholeBlocksOfWhatIsLeft) {
  DeploymentRequest request;
  request.block = 48;
  const Served one = served("llama3.1-8b", "dgx-h100", "vllm", request, 1);
  const KvCapacity kv = kv_capacity(one.model, one.system, one.plan, one.engine);
  EXPECT_EQ(kv.tokens % 48, 0);
  EXPECT_LE(static_cast<double>(kv.tokens) * kv.bytes_per_token, kv.memory.kv.si());
  EXPECT_GT(static_cast<double>(kv.tokens + 48) * kv.bytes_per_token, kv.memory.kv.si());
  EXPECT_NEAR((kv.memory.kv + kv.memory.weights + kv.memory.activations + kv.memory.reserve).si(),
              0.9 * kv.memory.total.si(), 1.0);
  // A request of 49 tokens takes two blocks.
  EXPECT_EQ(kv.requests(49), kv.tokens / 48 / 2);
}

TEST(KvCapacity, WeightsAreTheModelsInItsFormat) {
  const Served one = served("llama3.1-8b", "dgx-h100", "vllm", {}, 1);
  // 8,030,261,248 parameters of 2 bytes, less what norms take: 65 vectors of 4,096.
  EXPECT_NEAR(rank_weights(one.model, one.plan).si(), 2.0 * 8'030'261'248.0, 65 * 4096 * 2.0);
  DeploymentRequest fp8;
  fp8.weights = Dtype::fp8;
  const Served half = served("llama3.1-8b", "dgx-h100", "vllm", fp8, 1);
  // Embedding and head stay in 16 bits: 2 x 128,256 x 4,096.
  const double linear = 8'030'261'248.0 - 2.0 * 128'256 * 4096;
  EXPECT_NEAR(rank_weights(half.model, half.plan).si(), linear + 4.0 * 128'256 * 4096,
              65 * 4096 * 2.0);
}

TEST(KvCapacity, MoreMemoryOrRanksNeverHoldLess) {
  std::int64_t before = 0;
  for (const int tp : {1, 2, 4, 8}) {
    DeploymentRequest request;
    request.tp = tp;
    const Served one = served("llama3.1-8b", "dgx-h100", "vllm", request, tp);
    const std::int64_t now = kv_capacity(one.model, one.system, one.plan, one.engine).tokens;
    EXPECT_GT(now, before);
    before = now;
  }
}

TEST(KvCapacity, RefusesWithTheMissAndTheNearestChange) {
  const Served one = served("llama3.1-8b", "dgx-h100", "vllm", {}, 1);
  const KvCapacity kv = kv_capacity(one.model, one.system, one.plan, one.engine);
  need_kv(one.model, one.system, one.plan, one.engine, kv.tokens, {});
  try {
    need_kv(one.model, one.system, one.plan, one.engine, kv.tokens + 1, {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::infeasible);
    EXPECT_THAT(error.what(), testing::HasSubstr("1 tokens are missing"));
    EXPECT_THAT(error.what(), testing::HasSubstr("--kv_share 0.95 would do"));
  }
}

}  // namespace
}  // namespace orrery::kv_capacity_test
