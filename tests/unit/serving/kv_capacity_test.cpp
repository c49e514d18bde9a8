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
    return rank_weights(one.model, one.system.gpu, one.plan).si();
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
  EXPECT_EQ(kv.requests(49, 1), kv.tokens / 48 / 2);
}

TEST(KvCapacity, WeightsAreTheModelsInItsFormat) {
  const Served one = served("llama3.1-8b", "dgx-h100", "vllm", {}, 1);
  // 8,030,261,248 parameters of 2 bytes, less what norms take: 65 vectors of 4,096.
  EXPECT_NEAR(rank_weights(one.model, one.system.gpu, one.plan).si(), 2.0 * 8'030'261'248.0,
              65 * 4096 * 2.0);
  DeploymentRequest fp8;
  fp8.weights = Dtype::fp8;
  const Served half = served("llama3.1-8b", "dgx-h100", "vllm", fp8, 1);
  // Embedding and head stay in 16 bits: 2 x 128,256 x 4,096.
  const double linear = 8'030'261'248.0 - 2.0 * 128'256 * 4096;
  EXPECT_NEAR(rank_weights(half.model, half.system.gpu, half.plan).si(),
              linear + 4.0 * 128'256 * 4096, 65 * 4096 * 2.0);
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

// The largest length that the cache holds is exact: one block more does not fit.
TEST(KvCapacity, TheLongestRequestIsTheLastThatFits) {
  for (const char* model : {"llama3.1-8b", "gemma-3-27b", "gpt-oss-20b", "deepseek-v2-lite"})
    for (const std::int64_t block : {1, 16, 48}) {
      DeploymentRequest request;
      request.block = block;
      request.budget = 1000;
      const Served one = served(model, "dgx-h100", "vllm", request, 1);
      for (const double gigabytes : {0.3, 2.0, 9.5}) {
        const Bytes cache{gigabytes * 1e9};
        const std::int64_t longest = longest_request(one.model, one.plan, cache);
        EXPECT_EQ(longest % block, 0);
        EXPECT_LE(kv_of_request(one.model, one.plan, longest), cache) << model;
        EXPECT_GT(kv_of_request(one.model, one.plan, longest + block), cache) << model;
      }
    }
}

// gpt-oss-20b: 12 layers keep 131,072 tokens, 12 a window of 128 with a budget of 8,192 in 520
// blocks and one more; each token has 2 x 8 heads of 64 in 2 bytes.
TEST(KvCapacity, WindowedLayersKeepTheirWindowAndAnIteration) {
  DeploymentRequest request;
  request.budget = 8192;
  const Served one = served("gpt-oss-20b", "dgx-h100", "vllm", request, 1);
  EXPECT_EQ(kv_of_request(one.model, one.plan, 131072).si(),
            12.0 * 2048 * (131072 + 16 * (520 + 1)));
}

// Engines that free windows count blocks in groups of layers, those that do not keep all tokens in
// all layers: gpt-oss-20b has 12 and 12, Gemma 3 27B 10 that keep all and 52 in six groups of 10.
TEST(KvCapacity, OnlyEnginesThatFreeWindowsHoldMoreRequests) {
  DeploymentRequest request;
  request.block = 16;
  request.weights = Dtype::bf16;
  for (const char* engine : {"vllm", "vllm-2025", "sglang", "trtllm", "vllm-2024"}) {
    const Served one = served("gpt-oss-20b", "dgx-h100", engine, request, 1);
    const bool frees = one.engine.memory.frees_windows;
    EXPECT_EQ(frees, std::string{engine} == "vllm" || std::string{engine} == "vllm-2025");
    const KvCapacity kv = kv_capacity(one.model, one.system, one.plan, one.engine);
    EXPECT_EQ(kv.bytes_per_token, 24 * 2 * 8 * 64 * 2);
    EXPECT_EQ(kv.blocks(), kv.tokens / 16 * (frees ? 2 : 1));
    // 1,024 tokens are 64 blocks; the 128 that a decode sees touch 9.
    EXPECT_EQ(kv.blocks_of(1024, 1), frees ? 64 + 9 : 64);
    EXPECT_EQ(kv.requests(1024, 1), kv.blocks() / (frees ? 64 + 9 : 64));
  }
  const Served gemma = served("gemma-3-27b", "dgx-h100", "vllm", request, 1);
  const KvCapacity kv = kv_capacity(gemma.model, gemma.system, gemma.plan, gemma.engine);
  EXPECT_EQ(kv.blocks_of(16'000, 1), 1000 + 6 * 65);  // 1,024 tokens touch 65 blocks.
  const Served whole = served("gemma-3-27b", "dgx-h100", "trtllm", request, 1);
  EXPECT_EQ(kv_bytes_per_token(whole.model, whole.plan), 62 * 2 * 16 * 128 * 2);
}

// vLLM does not start with a length that the cache does not hold; SGLang and TensorRT-LLM limit
// requests to what it does hold. All refuse requests beyond their length.
TEST(KvCapacity, AnEngineStartsOnlyWithALengthThatFits) {
  struct Case {
    const char* engine;
    bool refuses;
  };
  for (const Case& each : {Case{"vllm", true},
                           {"vllm-2025", true},
                           {"vllm-2024", true},
                           {"sglang", false},
                           {"trtllm", false},
                           {"trtllm-2025", false}}) {
    DeploymentRequest request;
    request.max_length = 131072;
    const Served one = served("llama3.1-8b", "rtx-4090-pcie", each.engine, request, 1);
    const auto refusal = [&](std::int64_t length, std::int64_t tokens) -> std::string {
      Deployment plan = one.plan;
      plan.max_length = length;
      try {
        need_length(plan, tokens, {});
        need_kv(one.model, one.system, plan, one.engine, tokens, {});
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::infeasible);
        return error.what();
      }
      return "";
    };
    const KvCapacity kv = kv_capacity(one.model, one.system, one.plan, one.engine);
    const std::int64_t longest = longest_request(one.model, one.plan, kv.memory.kv);
    EXPECT_EQ(longest, kv.tokens);  // All layers keep all tokens.
    EXPECT_EQ(refusal(longest, 100), "") << each.engine;
    const std::string beyond = refusal(longest + kv.block, 100);
    EXPECT_EQ(!beyond.empty(), each.refuses) << each.engine;
    if (each.refuses) {
      EXPECT_THAT(beyond, testing::HasSubstr("the engine does not start; the largest that fits is "
                                             "--max_length " +
                                             std::to_string(longest)));
    }
    EXPECT_THAT(refusal(4096, 4097), testing::HasSubstr("the server refuses it"));
    EXPECT_EQ(length_notes(one.model, one.plan, one.engine, kv, 100).size(), 0u);
    Deployment unstated = one.plan;
    unstated.max_length = 0;
    EXPECT_EQ(length_notes(one.model, unstated, one.engine, kv, 100).size(),
              each.refuses ? 1u : 0u);
    EXPECT_EQ(length_notes(one.model, unstated, one.engine, kv, 131073).size(),
              each.refuses ? 2u : 1u);
  }
}

// Llama 3.1 405B as its publisher quantises it: attention of 126 layers in 16 bits, and of the MLPs
// the first and the last one. Its first upload had 16 key heads, each twice, of which vLLM loaded
// 57.75 GiB a GPU (vLLM issue 6746).
TEST(KvCapacity, PartlyQuantisedWeightsAreCountedByModules) {
  DeploymentRequest request;
  request.weights = Dtype::fp8;
  request.attention = Dtype::bf16;
  request.ends_16bit = 1;
  Served one = served("llama3.1-405b", "dgx-h100", "vllm", request, 8);
  constexpr double hidden = 16384, mlp = 3.0 * hidden * 53248;
  const auto expected = [&](double key_heads) {
    const double attention = 2.0 * hidden * hidden + 2.0 * hidden * key_heads * 128;
    return (126 * 2.0 * attention + 124 * mlp + 2 * 2.0 * mlp + 2.0 * 2.0 * 128256 * hidden) / 8;
  };
  EXPECT_DOUBLE_EQ(rank_weights(one.model, one.system.gpu, one.plan).si(), expected(8));
  one.model.kv_heads = 16;
  const double first = rank_weights(one.model, one.system.gpu, one.plan).si();
  EXPECT_DOUBLE_EQ(first, expected(16));
  EXPECT_NEAR(first / (57.752 * 1024 * 1024 * 1024), 1.0, 0.002);
}

// Kimi-K2-Thinking: 60 layers of 384 experts of 3 x 7168 x 2048 in 4 bits and 16 for 32 of them,
// 532 GiB in all (PrimeIntellect-ai/prime-rl issue 2827).
TEST(KvCapacity, ExpertsInGroupsOf32) {
  DeploymentRequest request;
  request.weights = Dtype::bf16;
  request.experts = Dtype::bf16;
  const Served wide = served("kimi-k2", "dgx-h200", "vllm", request, 8);
  request.experts = Dtype::int4_g32;
  const Served narrow = served("kimi-k2", "dgx-h200", "vllm", request, 8);
  const auto weights = [](const Served& one) {
    return rank_weights(one.model, one.system.gpu, one.plan).si();
  };
  constexpr double experts = 60.0 * 384 * 3 * 7168 * 2048;
  EXPECT_NEAR(weights(wide) - weights(narrow), (2.0 - 4.5 / 8) * experts / 8, 1e3);
  EXPECT_NEAR(4.5 / 8 * experts / (1024.0 * 1024 * 1024), 532, 1);
  EXPECT_NEAR(weights(narrow) / 1e9, 74.2 + 2.0, 0.2);  // 2.0: copies of latent attention's.
}

// What vLLM logged for gpt-oss-120b: 64.38 GiB with Triton's kernels on an H100 (issue 33155), and
// 65.97 with Marlin's (issue 23278), which GPUs before Hopper have.
TEST(KvCapacity, Mxfp4ExpertsArePadded) {
  const auto gibibytes = [](const char* system) {
    DeploymentRequest request;
    request.experts = Dtype::mxfp4;
    request.tp = 1;
    const Served one = served("gpt-oss-120b", system, "vllm", request, 1);
    return rank_weights(one.model, one.system.gpu, one.plan).si() / (1024.0 * 1024 * 1024);
  };
  EXPECT_NEAR(gibibytes("dgx-h100"), 64.38, 0.15);
  EXPECT_NEAR(gibibytes("dgx-a100-80gb"), 65.97, 0.2);  // Biases of 0.08 GB are not counted.
  // 36 layers of 128 experts of 3 x 3072 x 3072, and 2.13e9 other weights in 16 bits.
  EXPECT_NEAR(gibibytes("dgx-b200"),
              (36.0 * 128 * 3 * 3072 * 3072 * 4.25 / 8 + 2 * 2.127e9) / (1024.0 * 1024 * 1024),
              0.02);
}

}  // namespace
}  // namespace orrery::kv_capacity_test
