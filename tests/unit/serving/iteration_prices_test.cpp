#include "sim/serving/iteration_prices.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/collectives/collective_time.hpp"

namespace orrery::iteration_prices_test {
namespace {

struct Served {
  Model model;
  System system;
  ServingEngine engine;
  Deployment plan;

  IterationPrices prices() const { return {model, system, plan, engine}; }
};

Served served(const std::string& model, const std::string& system, DeploymentRequest request,
              int gpus, const std::string& engine = "vllm") {
  Served one{read_model(model, {}), read_system(system, {}), read_serving_engine(engine, {}), {}};
  one.plan = make_deployment(one.model, one.system, one.engine, request, gpus, {});
  return one;
}

DeploymentRequest with_tp(int tp, Dtype weights = Dtype::bf16) {
  DeploymentRequest request;
  request.tp = tp;
  request.weights = weights;
  return request;
}

int kernels(const IterationPrice& price, const std::string& op) {
  for (const IterationPart& part : price.parts)
    if (part.op == op) return part.count;
  return 0;
}

Iteration decode(std::int64_t requests, std::int64_t each) {
  return {requests, requests * each, {}, requests};
}

TEST(IterationPrices, ATensorParallelLayerHasTwoAllReduces) {
  const Served one = served("llama3.1-70b", "dgx-h200", with_tp(8), 8);
  EXPECT_EQ(kernels(one.prices().price(decode(16, 1000)), "all_reduce"), 160);
  const Served alone = served("llama3.1-70b", "dgx-h200", with_tp(1, Dtype::fp8), 1);
  EXPECT_EQ(kernels(alone.prices().price(decode(16, 1000)), "all_reduce"), 0);
}

// NCCL's collectives between nodes wait for the host in CUDA graphs: DeepSeek-R1 over 16 H100s
// takes 23.1 ms a token (tests/validation/inference/tenstorrent.json), 12 of them for 122
// all-reduces.
TEST(IterationPrices, AllReducesBetweenNodesWaitForTheHostInGraphs) {
  const Served one = served("deepseek-v3", "dgx-h100", with_tp(16, Dtype::fp8_block), 16, "sglang");
  const ServingKernels kernels{one.system.gpu, one.engine};
  const GroupReduce reduce{one.system, kernels};
  const auto waits = [&](int gpus) {
    return (reduce(gpus, 7168, true).time - reduce(gpus, 7168, false).time).si();
  };
  EXPECT_NEAR(waits(16), 96e-6, 1e-12);
  EXPECT_EQ(waits(8), 0.0);
  EXPECT_NEAR(one.prices().price(decode(1, 192)).step.si(), 23.1e-3, 0.8e-3);
  // No graph of SGLang's holds more than 256 tokens.
  const IterationPrices prices = one.prices();
  EXPECT_GT(prices.dense(256), prices.dense(272) + Seconds{122 * 90e-6});
}

// Inside an NVL72 nothing leaves the domain.
TEST(IterationPrices, AllReducesInsideARackDoNotWait) {
  const Served one = served("deepseek-v3", "gb200-nvl72", with_tp(16, Dtype::fp8_block), 16);
  const ServingKernels kernels{one.system.gpu, one.engine};
  const GroupReduce reduce{one.system, kernels};
  EXPECT_EQ(reduce(16, 7168, true).time, reduce(16, 7168, false).time);
}

// An engine's kernel was measured on one kind of links each; a machine with others has NCCL's.
TEST(IterationPrices, AMeasuredAllReduceIsOfItsLinksAlone) {
  const Served one = served("llama3.1-70b", "dgx-h100", with_tp(8), 8);
  const ServingKernels kernels{one.system.gpu, one.engine};
  constexpr std::int64_t elements = 16 * 8192;
  const KernelTime measured = GroupReduce{one.system, kernels}(8, elements, true);
  EXPECT_EQ(measured.time, kernels.all_reduce(8, elements)->time);
  for (const bool over_pcie : {false, true}) {
    System other = one.system;
    if (over_pcie) other.wiring = NodeWiring::pcie;
    other.scale_up = BytesPerSecond{over_pcie ? 450e9 : 200e9};
    const GroupReduce reduce{other, kernels};
    EXPECT_EQ(reduce(8, elements, true).time,
              reduce.by_nccl(CollectiveKind::all_reduce, 8, Bytes{2.0 * elements}, true).time);
  }
}

// Attention in 16 bits beside MLPs in 8, and both in 16 at the ends: the parts are those of the
// deployments that have one format alone.
TEST(IterationPrices, PartsOfALayerHaveFormatsOfTheirOwn) {
  DeploymentRequest mixed = with_tp(8, Dtype::fp8);
  mixed.attention = Dtype::bf16;
  mixed.ends_16bit = 1;
  const auto time_of = [&](const DeploymentRequest& request, const std::string& op) {
    const Served one = served("llama3.1-405b", "dgx-h200", request, 8);
    Seconds time;
    for (const IterationPart& part : one.prices().price(decode(16, 1000)).parts)
      if (part.op.starts_with(op)) time += part.time;
    return time.si();
  };
  const DeploymentRequest wide = with_tp(8), narrow = with_tp(8, Dtype::fp8);
  EXPECT_DOUBLE_EQ(time_of(mixed, "gemm.qkv"), time_of(wide, "gemm.qkv"));
  EXPECT_DOUBLE_EQ(time_of(mixed, "gemm.out"), time_of(wide, "gemm.out"));
  EXPECT_NEAR(
      time_of(mixed, "gemm.mlp_up"),
      124.0 / 126 * time_of(narrow, "gemm.mlp_up") + 2.0 / 126 * time_of(wide, "gemm.mlp_up"),
      1e-12);
}

TEST(IterationPrices, NoStepIsShorterThanOneReadingOfTheWeights) {
  for (const char* engine : {"vllm", "sglang", "trtllm"})
    for (const Dtype format : {Dtype::bf16, Dtype::fp8})
      for (const int tp : {1, 2, 4}) {
        const Served one =
            served("qwen3-32b", "rtx-pro-6000-pcie", with_tp(tp, format), tp, engine);
        // Its linear layers, without embedding and head: 31.2 of its 32.8 G parameters.
        const double weights = 31.2e9 * element_bytes(format) / tp;
        const Seconds least = Bytes{weights} / one.system.gpu.memory_bandwidth;
        EXPECT_GT(one.prices().price(decode(1, 1000)).step, least) << engine << " tp " << tp;
      }
}

TEST(IterationPrices, DenseTurnsFromMemoryToComputeBetween200And400Tokens) {
  // Qwen3-32B on RTX PRO 6000: 468 TFLOP/s over 1,597 GB/s are 293 operations a byte. Below the
  // knee twice the tokens take hardly longer, above it twice as long.
  const Served one = served("qwen3-32b", "rtx-pro-6000-pcie", with_tp(1), 1);
  const IterationPrices prices = one.prices();
  const auto slope = [&](std::int64_t m) {
    return std::log2(prices.dense(2 * m) / prices.dense(m));
  };
  EXPECT_LT(slope(50), 0.35);
  EXPECT_GT(slope(400), 0.75);
  // Where the rooflines' asymptotes cross: the time of few tokens over the rate of many.
  const double knee = prices.dense(8).si() / (prices.dense(4096).si() / 4096);
  EXPECT_GT(knee, 200);
  EXPECT_LT(knee, 400);
}

TEST(IterationPrices, MoreTokensAndLongerContextsNeverTakeLess) {
  const Served one = served("llama3.1-8b", "dgx-h100", with_tp(1), 1);
  const IterationPrices prices = one.prices();
  // Between two rows of a table a larger product may be a little faster: 3 %.
  for (std::int64_t m = 1; m <= 4096; m *= 2)
    EXPECT_GT(1.03 * prices.dense(2 * m).si(), prices.dense(m).si()) << m;
  for (std::int64_t context = 64; context <= 32768; context *= 2)
    EXPECT_GT(1.03 * prices.decode_attention(16, 32 * context).si(),
              prices.decode_attention(16, 16 * context).si())
        << context;
}

TEST(IterationPrices, APriceIsTheSumOfItsParts) {
  const Served one = served("llama3.1-70b", "dgx-h200", with_tp(4), 4);
  const IterationPrices prices = one.prices();
  const Iteration iteration{32, 32 * 1024, {}, 32};
  const IterationPrice price = prices.price(iteration);
  // 32 tokens are priced exactly; contexts of a power of two are points of the grid.
  const Seconds sum = prices.dense(32) + prices.decode_attention(32, 32 * 1024) + prices.head(32);
  EXPECT_NEAR(price.gpu / sum, 1.0, 1e-12);
  EXPECT_EQ(price.step, std::max(price.gpu, price.host) + price.gap);
}

TEST(IterationPrices, TheGridOfTokensIsNearTheExactPrices) {
  const Served one = served("llama3.1-8b", "dgx-h100", with_tp(1), 1);
  const IterationPrices prices = one.prices();
  for (const std::int64_t m : {70, 100, 333, 1000, 5000}) {
    Seconds exact;
    for (const IterationPart& part : prices.price({0, 0, {{m, 0}}, 0}).parts)
      if (part.op != "prefill_attention") exact += part.time;
    EXPECT_NEAR(prices.dense(m) / exact, 1.0, 0.02) << m;
  }
}

TEST(IterationPrices, AnEngineThatHidesNothingAddsItsHost) {
  const Served one = served("llama2-70b", "dgx-h100", with_tp(8), 8, "huggingface-2023");
  const IterationPrice price = one.prices().price(decode(4, 512));
  EXPECT_EQ(price.step, price.gpu + price.host + price.gap);
  // 80 layers at 0.22 ms and four requests at 0.2 ms.
  EXPECT_NEAR(price.host.si(), 80 * 0.22e-3 + 4 * 0.2e-3, 1e-12);
}

TEST(IterationPrices, LongPromptsWaitForTheirLaunches) {
  const Served one = served("llama3.2-1b", "dgx-h200", with_tp(1), 1);
  const IterationPrices prices = one.prices();
  // 16 layers of 0.1 ms, from 513 tokens on.
  EXPECT_EQ(prices.eager(512, false), Seconds{});
  EXPECT_NEAR(prices.eager(513, false).si(), 1.6e-3, 1e-12);
  const IterationPrice price = prices.price({0, 0, {{600, 0}}, 1});
  EXPECT_GE(price.gpu, prices.eager(600, false));
}

// 48 requests run in the graph of 64. No graph holds a prompt, or more than 128 requests.
TEST(IterationPrices, DecodesFillTheirGraph) {
  DeploymentRequest request = with_tp(1);
  request.graph_sizes = std::vector<std::int64_t>{1, 64, 128};
  const Served one = served("llama3.2-1b", "dgx-h200", request, 1, "trtllm");
  const Served bare = served("llama3.2-1b", "dgx-h200", with_tp(1), 1, "trtllm");
  const IterationPrices prices = one.prices(), unpadded = bare.prices();
  const auto time_of = [](const IterationPrice& price, const std::string& op) {
    for (const IterationPart& part : price.parts)
      if (part.op == op) return part.time;
    return Seconds{};
  };
  const IterationPrice few = prices.price(decode(48, 512)), whole = unpadded.price(decode(64, 512));
  for (const char* op : {"gemm.qkv", "gemm.mlp_up", "gemm.head", "small"})
    EXPECT_EQ(time_of(few, op), time_of(whole, op)) << op;
  EXPECT_EQ(time_of(few, "decode_attention"),
            time_of(unpadded.price(decode(48, 512)), "decode_attention"));
  EXPECT_EQ(few.eager, Seconds{});
  EXPECT_GT(prices.eager(129, false), Seconds{});
  EXPECT_GT(prices.eager(48, true), Seconds{});
  EXPECT_EQ(unpadded.eager(48, true), Seconds{});
}

TEST(IterationPrices, CopiesOfAttentionExchangeTokensInsteadOfAdding) {
  DeploymentRequest request = with_tp(1, Dtype::fp8_block);
  request.dp = 8;
  const Served copies = served("deepseek-v3", "dgx-h200", request, 8);
  EXPECT_EQ(copies.plan.ep, 8);
  const IterationPrice price = copies.prices().price(decode(8, 1000));
  EXPECT_EQ(kernels(price, "all_reduce"), 0);
  EXPECT_EQ(kernels(price, "exchange"), 2 * 58);  // Dispatch and combine of 58 layers.
  EXPECT_EQ(kernels(price, "experts"), 58);
}

// Llama 3.1 8B, of one token and layer, in 16 bits: two norms with residual 8 x 4,096, rotation and
// cache 2 x (4,096 + 2 x 1,024), activation 3 x 14,336; attention and MLP by two ranks half of
// theirs. Quantised are 3 x 4,096 + 14,336 values, from two bytes to one.
TEST(IterationPrices, SmallKernelsMoveWhatLiesBetweenProducts) {
  const auto moved = [](const char* engine, int tp, Dtype format) {
    const Served one = served("llama3.1-8b", "dgx-h100", with_tp(tp, format), tp, engine);
    for (const IterationPart& part : one.prices().price({0, 0, {{100, 0}}, 1}).parts)
      if (part.op == "small") return part.bytes.si() / (100 * 32);
    return 0.0;
  };
  EXPECT_EQ(moved("vllm", 1, Dtype::bf16), 2.0 * (32768 + 12288 + 43008));
  EXPECT_EQ(moved("sglang", 2, Dtype::bf16), 2.0 * (32768 + 6144 + 21504));
  EXPECT_EQ(moved("vllm", 1, Dtype::fp8), 2.0 * (32768 + 12288 + 43008) + 3.0 * 26624);
  // Its products' table holds the quantisation.
  EXPECT_EQ(moved("trtllm", 1, Dtype::fp8_block), 2.0 * (32768 + 12288 + 43008));
  EXPECT_EQ(moved("vllm", 1, Dtype::int4), 2.0 * (32768 + 12288 + 43008));
  // Eight kernels of four tensors each, whatever is in them.
  EXPECT_EQ(moved("vllm-2024", 1, Dtype::bf16), 8 * 8.0 * 4096);
}

// Of one layer: dispatch or combine, or the mean of both.
Seconds exchange(const std::string& system, int copies, std::int64_t requests,
                 const std::string& model = "deepseek-v3", Dtype format = Dtype::fp8_block,
                 const std::string& engine = "vllm", bool eplb = false) {
  DeploymentRequest request = with_tp(1, format);
  request.dp = copies;
  request.eplb = eplb;
  const Served one = served(model, system, request, copies, engine);
  for (const IterationPart& part : one.prices().price(decode(requests, 1000)).parts)
    if (part.op == "exchange") return 1.0 / part.count * part.time;
  return {};
}

// 128 tokens of 7,168 x 2 bytes to 8 experts each are 14.68 MB: over NVLink alone 8 us and
// 14.68 MB / 400 GB/s (H200), /700 GB/s (NVL72), /200 GB/s where the link has no more (H800).
TEST(IterationPrices, ExchangesInsideADomainUseItsNvlink) {
  EXPECT_NEAR(exchange("dgx-h200", 8, 128).si(), 8e-6 + 14.680064e6 / 400e9, 1e-12);
  EXPECT_NEAR(exchange("hgx-h800", 8, 128).si(), 8e-6 + 14.680064e6 / 200e9, 1e-12);
  EXPECT_NEAR(exchange("gb200-nvl72", 8, 128).si(), 8e-6 + 14.680064e6 / 700e9, 1e-12);
}

// Without NVLink all ranks get all tokens, 2 x 75 x 2,048 values, and add up what experts made of
// them. TensorRT-LLM sends them in the experts' format: nvfp4 takes 0.5625 bytes.
TEST(IterationPrices, ExchangesWithoutNvlinkGatherAllTokens) {
  const CollectiveTime nccl{read_system("rtx-pro-6000-pcie", {})};
  const auto time = [&](CollectiveKind kind, double bytes) {
    return nccl(kind, Bytes{bytes * 2 * 75 * 2048}, {2, 1, 2}).time();
  };
  const Seconds back = time(CollectiveKind::reduce_scatter, 2.0);
  const auto taken = [](Dtype format, const char* engine) {
    return exchange("rtx-pro-6000-pcie", 2, 75, "qwen3-30b-a3b", format, engine).si();
  };
  EXPECT_NEAR(taken(Dtype::bf16, "vllm"), 0.5 * (time(CollectiveKind::all_gather, 2.0) + back).si(),
              1e-12);
  EXPECT_NEAR(taken(Dtype::nvfp4, "trtllm"),
              0.5 * (time(CollectiveKind::all_gather, 0.5625) + back).si(), 1e-12);
}

// Copies of attention that share each expert need all tokens of all of them: 2 x 8 x 128 tokens of
// 7,168 values over both nodes' GPUs. In a graph each of the two waits 96 us for the host.
TEST(IterationPrices, ExpertsInPartsGatherAllTokens) {
  const CollectiveTime nccl{read_system("dgx-h100", {})};
  const auto time = [&](CollectiveKind kind) {
    return nccl(kind, Bytes{2.0 * 16 * 128 * 7168}, {16, 2, 8}).time().si();
  };
  DeploymentRequest request = with_tp(1, Dtype::fp8_block);
  request.dp = 16;
  request.ep = 1;
  const Served one = served("deepseek-v3", "dgx-h100", request, 16, "sglang");
  Seconds taken;
  for (const IterationPart& part : one.prices().price(decode(128, 1000)).parts)
    if (part.op == "exchange") taken = 1.0 / part.count * part.time;
  EXPECT_NEAR(
      taken.si(),
      0.5 * (time(CollectiveKind::all_gather) + time(CollectiveKind::reduce_scatter)) + 96e-6,
      1e-12);
}

// Low-latency dispatch and combine of DeepEP on H800, which its README.md has for 128 tokens and an
// even router; the fullest rank of a balancer's receives a fifth more.
TEST(IterationPrices, WideExchangesTakeWhatDeepEpMeasured) {
  struct Measured {
    int ranks;
    double dispatch, combine;
  };
  const Measured all[] = {
      {16, 118e-6, 195e-6}, {32, 155e-6, 273e-6}, {64, 173e-6, 314e-6}, {128, 192e-6, 369e-6}};
  for (const auto& [ranks, dispatch, combine] : all) {
    const double even = 0.5 * (dispatch + combine);
    const double taken =
        exchange("hgx-h800", ranks, 128, "deepseek-v3", Dtype::fp8_block, "sglang", true).si();
    EXPECT_GT(taken, 0.9 * even) << ranks;
    EXPECT_LT(taken, 1.3 * even) << ranks;
  }
}

// Tokens of the fullest rank: ep^0.2 without a balancer, 1.2 with one. A balancer never takes more
// time, nor do fewer tokens.
TEST(IterationPrices, BalancersShortenWideExperts) {
  for (const int ranks : {16, 32, 64})
    for (const std::int64_t requests : {1, 16, 128, 1024}) {
      const auto time = [&](bool balanced, std::int64_t n) {
        return exchange("dgx-h100", ranks, n, "deepseek-v3", Dtype::fp8_block, "sglang", balanced);
      };
      EXPECT_LE(time(true, requests), time(false, requests)) << ranks << " " << requests;
      EXPECT_LE(time(true, requests), time(true, 2 * requests)) << ranks << " " << requests;
    }
  DeploymentRequest request = with_tp(1, Dtype::fp8_block);
  request.dp = 32;
  EXPECT_EQ(served("deepseek-v3", "dgx-h100", request, 32).plan.fullest_experts(), 2.0);
  request.eplb = true;
  EXPECT_EQ(served("deepseek-v3", "dgx-h100", request, 32).plan.fullest_experts(), 1.2);
}

// All layouts of a stage of up to 40 GPUs, those that fill no whole domains among them: each is
// refused or has a time.
TEST(IterationPrices, EveryLayoutHasATime) {
  const ServingEngine engine = read_serving_engine("sglang", {});
  int priced = 0;
  for (const char* name : {"mixtral-8x7b", "deepseek-v2", "gpt-oss-120b"}) {
    const Model model = read_model(name, {});
    for (const char* word : {"dgx-h100", "gb200-nvl72", "l40s-pcie"}) {
      const System system = read_system(word, {});
      const auto kernels = std::make_shared<const ServingKernels>(system.gpu, engine);
      for (int gpus = 1; gpus <= 40; ++gpus)
        for (int tp = 1; tp <= gpus; ++tp)
          for (int ep = 1; gpus % tp == 0 && ep <= gpus; ++ep)
            for (const bool balanced : {false, true}) {
              DeploymentRequest request = with_tp(tp);
              request.dp = gpus / tp;
              request.ep = ep;
              request.eplb = balanced;
              Deployment plan;
              try {
                plan = make_deployment(model, system, engine, request, gpus, {});
              } catch (const Error&) {
                continue;
              }
              ++priced;
              EXPECT_GT(IterationPrices(model, system, plan, engine, kernels).dense(8).si(), 0.0)
                  << name << " on " << gpus << " of " << word << ", tp " << tp << ", ep " << ep;
            }
    }
  }
  EXPECT_GT(priced, 500);
}

// Halves of a batch hide all of an exchange that is shorter than the other kernels.
TEST(IterationPrices, HalvesOfABatchHideTheExchange) {
  DeploymentRequest request = with_tp(1, Dtype::fp8_block);
  request.dp = 32;
  request.eplb = true;
  const auto parts = [&](bool halves, std::int64_t tokens) {
    request.two_batch = halves;
    Iteration prompts;
    prompts.chunks = {{tokens, 0}};
    std::map<std::string, Seconds> times;
    for (const IterationPart& part :
         served("deepseek-v3", "dgx-h100", request, 32, "sglang").prices().price(prompts).parts)
      times[part.op] += part.time;
    return times;
  };
  auto whole = parts(false, 8192), halves = parts(true, 16384);
  EXPECT_EQ(halves["exchange"], Seconds{});
  EXPECT_NEAR(halves["experts"].si(), 2.0 * whole["experts"].si(), 1e-9);
  EXPECT_GT(whole["exchange"], Seconds{});
}

TEST(IterationPrices, AHopIsThereOnlyBetweenStages) {
  DeploymentRequest request = with_tp(1);
  EXPECT_EQ(served("llama3.1-8b", "dgx-h100", request, 1).prices().hop(100), Seconds{});
  request.pp = 2;
  const Served two = served("llama3.1-8b", "dgx-h100", request, 2);
  // 25 us and 100 tokens of 4,096 x 2 bytes over NVLink.
  EXPECT_NEAR(two.prices().hop(100).si(), 25e-6 + 100.0 * 4096 * 2 / two.system.scale_up.si(),
              1e-12);
  EXPECT_EQ(two.prices().longest_stage(), 0.5);
}

TEST(IterationPrices, TheFirstStagesHaveOneLayerMore) {
  DeploymentRequest request = with_tp(1);
  request.pp = 5;
  const Served five = served("llama3.1-8b", "dgx-h100", request, 5);  // 32 layers: 7 7 6 6 6.
  EXPECT_EQ(five.prices().longest_stage(), 7.0 / 32.0);
  EXPECT_EQ(five.prices().last_stage(), 6.0 / 32.0);
  EXPECT_EQ(five.prices().planning(100), Seconds{});
}

TEST(IterationPrices, AGpuWithoutTablesIsPricedByAssumptionsAndSaysSo) {
  DeploymentRequest request = with_tp(1, Dtype::fp16);
  request.kv = Dtype::fp16;
  const Served one = served("llama3.1-8b", "dgx-1-v100", request, 1);
  const IterationPrices prices = one.prices();
  EXPECT_EQ(prices.kernels().measured_gpu(), "");
  for (const IterationPart& part : prices.price(decode(4, 100)).parts) {
    if (part.op.starts_with("gemm") || part.op == "decode_attention") {
      EXPECT_EQ(part.tag, Tag::default_value) << part.op;
    }
  }
}

}  // namespace
}  // namespace orrery::iteration_prices_test
