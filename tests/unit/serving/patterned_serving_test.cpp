#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "sim/model/layer_pattern.hpp"
#include "sim/serving/iteration_prices.hpp"
#include "sim/serving/kv_capacity.hpp"
#include "sim/serving/served_layers.hpp"
#include "sim/serving/serving_run.hpp"
#include "sim/serving/serving_step.hpp"
#include "tests/support/error_text.hpp"

namespace orrery::patterned_serving_test {
namespace {

ServingSetup setup(const std::string& model, int gpus, const std::string& engine = "vllm",
                   DeploymentRequest request = {}, const std::string& system = "dgx-h200") {
  return make_serving_setup(model, system, engine, request, gpus, {});
}

std::string refusal(const std::string& model, const std::string& engine,
                    const DeploymentRequest& request = {}) {
  return error_text([&] { setup(model, 8, engine, request); });
}

KvCapacity capacity(const ServingSetup& of) {
  return kv_capacity(of.model, of.system, of.deployment, of.engine);
}

const IterationPart* part(const IterationPrice& price, const std::string& op) {
  for (const IterationPart& one : price.parts)
    if (one.op == op) return &one;
  return nullptr;
}

IterationPrice price(const ServingSetup& of, const Iteration& iteration) {
  return IterationPrices{of.model, of.system, of.deployment, of.engine}.price(iteration);
}

// vLLM raises a block of attention until its page holds a state. Qwen3.5 35B: a state of 32 x 128 x
// 128 x 4 B and three inputs of 8,192 channels in 2,048 B a token, 1,048 tokens. Nemotron 3 Super
// over four ranks with a cache in fp8: 1,063,936 B in 256 B, multiples of a chunk of 128 tokens
// (vllm-project.github.io, 2026-04-21-hybrid-ssm-disagg: 4,224).
TEST(PatternedServing, BlocksHoldStates) {
  EXPECT_EQ(setup("qwen3.5-35b-a3b", 1).deployment.block, 1'056);
  DeploymentRequest request;
  request.tp = 4;
  request.kv = Dtype::fp8;
  EXPECT_EQ(setup("nemotron-3-super-120b-a12b", 4, "vllm", request).deployment.block, 4'224);
  EXPECT_EQ(setup("gemma-4-31b", 8).deployment.block, 16);
  // States in the model's 16 bits where config.json names no format (vLLM pull request 32492).
  request = {};
  request.weights = Dtype::fp8;
  EXPECT_EQ(setup("qwen3-next-80b-a3b", 1, "vllm", request).deployment.block, 544);
  EXPECT_EQ(setup("kimi-linear-48b-a3b", 1).deployment.states, Dtype::fp32);
  EXPECT_EQ(setup("qwen3-next-80b-a3b", 2, "sglang").deployment.states, Dtype::fp32);
}

// 30 layers with states and 10 with attention: three groups of ten, so that a request has three
// blocks besides those of its tokens, and two drafts a state each.
TEST(PatternedServing, ARequestHasBlocksForItsStates) {
  const KvCapacity kv = capacity(setup("qwen3.5-35b-a3b", 1));
  EXPECT_EQ(kv.groups.states, 3);
  EXPECT_EQ(kv.groups.all(), 1);
  EXPECT_EQ(kv.blocks_of(1, 1), 4);
  EXPECT_EQ(kv.blocks_of(2 * kv.block + 1, 1), 6);
  EXPECT_EQ(kv.requests(kv.block, 1), kv.blocks() / 4);
  EXPECT_EQ(kv.longest(1), (kv.blocks() - 3) * kv.block);
}

// SGLang's pool has 0.9 times the memory of the KV cache, and five states for each request that
// runs where prefixes are kept: 70 requests of Qwen3.5 35B on an H200. A published run of 1,024
// clients had 58 on average (SGLang cookbook, Qwen3.6 benchmarks: 2,079 tokens/s at 27.8 ms each).
TEST(PatternedServing, APoolOfStatesLimitsRequests) {
  DeploymentRequest request;
  request.kv_share = 0.8;
  const ServingSetup of = setup("qwen3.5-35b-a3b", 1, "sglang", request);
  const KvCapacity kv = capacity(of);
  constexpr double state = 30.0 * (32 * 128 * 128 * 4 + 3 * 8'192 * 2);
  EXPECT_EQ(states_of_request(of.model, of.deployment), Bytes{state});
  const Bytes both = kv.memory.states + kv.memory.kv;
  EXPECT_EQ(kv.state_slots, static_cast<std::int64_t>(0.9 / 1.9 * (both.si() / state)));
  EXPECT_EQ(kv.memory.states, Bytes{static_cast<double>(kv.state_slots) * state});
  EXPECT_EQ(kv.groups.states, 0);
  ServingLoad load;
  load.prefix_cache = true;
  load.list.requests = {Request{}};
  EXPECT_EQ(replica_shape(of, load, kv).rules.most_requests, kv.state_slots / 5);
  load.prefix_cache = false;
  EXPECT_EQ(replica_shape(of, load, kv).rules.most_requests,
            std::min(kv.state_slots, of.deployment.max_seqs));
  EXPECT_EQ(kv.state_slots / 5, 70);
}

TEST(PatternedServing, StatesInHalfTheFormatTakeHalfTheMemory) {
  DeploymentRequest request;
  request.states = Dtype::bf16;
  const ServingSetup narrow = setup("minimax-m1", 8, "sglang", request);
  const ServingSetup wide = setup("minimax-m1", 8, "sglang");
  EXPECT_EQ(2.0 * states_of_request(narrow.model, narrow.deployment),
            states_of_request(wide.model, wide.deployment));
  const Iteration decodes{256, 256'000, {}, 256};
  EXPECT_LT(part(price(narrow, decodes), "state_step")->time,
            0.7 * part(price(wide, decodes), "state_step")->time);
}

// 28 of Jamba's 32 layers have 8,192 channels with 16 states. Over two ranks, an all-reduce of the
// 256 + 2 x 16 channels that make a scan's inputs lies inside of each, besides one behind each
// mixer and each MLP. vLLM keeps states in the model's 16 bits (vllm/model_executor/layers/mamba/
// mamba_utils.py, mamba1_state_dtype): 2 x (16 + 3) x 8,192 bytes, as much as 76 tokens of 8 key
// heads of 128; blocks are multiples of 16.
TEST(PatternedServing, SelectiveScansAddUpTheirInputs) {
  EXPECT_EQ(setup("jamba-1.5-mini", 1).deployment.block, 80);
  DeploymentRequest request;
  request.tp = 2;
  const ServingSetup of = setup("jamba-1.5-mini", 2, "vllm", request);
  EXPECT_EQ(states_of_request(of.model, of.deployment), Bytes{28.0 * 2 * (16 + 3) * 8'192 / 2});
  const IterationPrice step = price(of, {64, 64'000, {{512, 0}, {512, 0}}, 66});
  EXPECT_EQ(part(step, "all_reduce")->count, 28 + 2 * 32);
  EXPECT_EQ(part(step, "gemm.mixer_up")->count, 2 * 28);
  EXPECT_EQ(part(step, "scan")->count, 28);
  EXPECT_EQ(part(step, "scan")->tag, Tag::default_value);
  EXPECT_EQ(part(step, "state_step")->count, 28);
  EXPECT_EQ(part(step, "convolution")->count, 28);
  // 4,096 channels of two prompts of 512 tokens, a block of 32 threads each, twelve on each of 132
  // multiprocessors: six waves of 12 x 512 x (13 x 16 + 40) instructions at 0.53 of 128 a clock.
  const Gpu& gpu = of.system.gpu;
  const double clock = gpu.peak_fp32.si() / (256.0 * gpu.multiprocessors);
  EXPECT_NEAR(part(step, "scan")->time.si() / (28 * 6 * 12.0 * 512 * 248 / (0.53 * 128 * clock)),
              1.0, 1e-9);
}

// Each kind of layers has its own kernels: 30 with states, 10 with attention, 40 with experts.
TEST(PatternedServing, CountsKernelsByKind) {
  const ServingSetup of = setup("qwen3.5-35b-a3b", 8);
  const IterationPrice step = price(of, {64, 64'000, {{512, 0}, {512, 0}}, 66});
  const auto count = [&](const char* op) { return part(step, op) ? part(step, op)->count : 0; };
  EXPECT_EQ(count("state_step"), 30);
  EXPECT_EQ(count("convolution_step"), 30);
  EXPECT_EQ(count("scan"), 30);  // One for both prompts.
  EXPECT_EQ(count("convolution"), 30);
  EXPECT_EQ(count("gemm.mixer_in"), 30);
  EXPECT_EQ(count("gemm.qkv"), 10);
  EXPECT_EQ(count("decode_attention"), 10);
  EXPECT_EQ(count("experts"), 40);
  EXPECT_EQ(count("all_reduce"), 80);
}

// Layers with only a mixer or only experts have one all-reduce, and half of a layer's small
// kernels.
TEST(PatternedServing, HalfLayersCountHalf) {
  const ServingSetup of = setup("nemotron-3-nano-30b-a3b", 8);
  EXPECT_EQ(of.model.layers, 52);
  EXPECT_EQ(whole_layers(of.model), 26.0);
  const IterationPrice step = price(of, {64, 64'000, {}, 64});
  EXPECT_EQ(part(step, "all_reduce")->count, 52);
  EXPECT_EQ(part(step, "small")->count, 26 * 8);
}

// Heads of a state space fill waves: an eighth of them on a rank take as long, with a table (B200)
// and without one (B300).
TEST(PatternedServing, FewHeadsOfAStateSpaceTakeAWave) {
  for (const std::string gpu : {"b200-sxm", "b300-sxm"}) {
    const ServingKernels kernels{read_gpu(gpu, {}), read_serving_engine("vllm", {})};
    const auto time = [&](std::int64_t heads, std::int64_t prompts) {
      return kernels.scan({ScanKind::state_space, heads, 128, 64}, prompts, 4'096).time.time;
    };
    EXPECT_EQ(time(8, 1), time(64, 1)) << gpu;
    EXPECT_EQ(time(8, 8), time(64, 1)) << gpu;
    EXPECT_LT(time(64, 1), time(64, 8)) << gpu;
  }
}

// Decoding is as fast behind 100,000 tokens as behind 100, but for attention.
TEST(PatternedServing, StatesDoNotGrowWithTheContext) {
  const ServingSetup of = setup("nemotron-3-nano-30b-a3b", 1);
  const IterationPrice near = price(of, {8, 800, {}, 8}), far = price(of, {8, 800'000, {}, 8});
  EXPECT_EQ(part(near, "state_step")->time, part(far, "state_step")->time);
  EXPECT_LT(part(near, "decode_attention")->time, part(far, "decode_attention")->time);
}

// A sparse index reads all index keys: its step grows with the context, but by 132 B a token where
// dense latent attention grows by 1,152.
TEST(PatternedServing, ASparseIndexGrowsSlowly) {
  const ServingSetup sparse = setup("deepseek-v3.2", 8), dense = setup("deepseek-v3", 8);
  const auto growth = [](const ServingSetup& of, const char* op) {
    return part(price(of, {32, 32 * 60'000, {}, 32}), op)->time -
           part(price(of, {32, 32 * 30'000, {}, 32}), op)->time;
  };
  const Seconds slow = growth(sparse, "decode_attention.module");
  EXPECT_GT(slow, Seconds{});
  EXPECT_LT(slow, 0.4 * growth(dense, "decode_attention"));
}

// DeepSeek-V4 Flash: 21 layers keep an entry of 584 B and an index key of 132 B for four tokens, 20
// an entry for 128. Each of 43 has a window of 128 entries of each sequence, and unfinished entries
// in fp32: 81,920 and 524,288 B.
TEST(PatternedServing, CompressedAttentionKeepsFewBytesOfATokenAndManyOfASequence) {
  DeploymentRequest request;
  request.tp = 8;
  const ServingSetup of = setup("deepseek-v4-flash", 8, "vllm", request);
  const double token = 21 * (584.0 + 132.0) / 4.0 + 20 * 584.0 / 128.0;
  EXPECT_DOUBLE_EQ(kv_bytes_per_token(of.model, of.deployment), token);
  const double sequence = 43 * 128 * 584.0 + 21 * 81'920.0 + 20 * 524'288.0;
  const auto blocks = static_cast<std::int64_t>(
      std::ceil(sequence / (token * static_cast<double>(of.deployment.block))));
  EXPECT_EQ(capacity(of).groups.states, blocks);
  EXPECT_DOUBLE_EQ(kv_bytes_of_modules(of.model, of.deployment, 1'000), sequence + 1'000 * token);
  EXPECT_THAT(unmeasured_notes(of.system, of.model, of.deployment).front(),
              testing::HasSubstr("compressed attention"));
}

// SGLang sizes three pools together: for each token of the context, entries and index keys of all
// layers; for a tenth of them, a window's entries, and 81,920 B of unfinished entries of the 21
// layers with an index for each 128 of these. Those of the other 20 layers are of requests.
TEST(PatternedServing, SglangKeepsTheWindowsOfCompressedAttentionApart) {
  DeploymentRequest request;
  request.tp = 8;
  const ServingSetup of = setup("deepseek-v4-flash", 8, "sglang", request);
  const double token = 21 * (584.0 + 132.0) / 4.0 + 20 * 584.0 / 128.0;
  const double window = 43 * 584.0 + 21 * 81'920.0 / 128.0;
  EXPECT_DOUBLE_EQ(token + 0.1 * window, 7705.45);
  EXPECT_DOUBLE_EQ(kv_bytes_per_token(of.model, of.deployment), token + 0.1 * window);
  const KvCapacity kv = capacity(of);
  EXPECT_EQ(kv.groups.states, 0);
  EXPECT_EQ(kv.windows.tokens, kv.tokens / 10);
  EXPECT_EQ(kv.windows.window, 128);
  EXPECT_EQ(kv.windows.at_once, of.deployment.budget);
  EXPECT_EQ(kv.memory.states, (Bytes{256 * 20 * 524'288.0}));
  EXPECT_EQ(kv.requests(500'000, 8'192), kv.tokens / 500'000);
  const auto refused = [&](std::uint32_t prompt, double ratio, bool keeps) {
    DeploymentRequest small = request;
    small.window_ratio = ratio;
    small.kv_share = 0.25;
    const ServingSetup with = setup("deepseek-v4-flash", 8, "sglang", small);
    RequestList list;
    list.requests = {{Seconds{}, 10, 10}, {Seconds{}, prompt, 10}};
    return error_text([&] { need_windows(with, capacity(with), list, keeps, {"", ""}); });
  };
  EXPECT_THAT(refused(8'000, 0.001, true),
              testing::HasSubstr("and a request with a prompt of 8,000 holds 8,256"));
  EXPECT_EQ(refused(8'400, 0.001, true), "no error");  // Its last node has 208 tokens.
  EXPECT_EQ(refused(8'000, 0.001, false), "no error");
  request.window_ratio = 0.2;
  const KvCapacity more = capacity(setup("deepseek-v4-flash", 8, "sglang", request));
  EXPECT_LT(more.tokens, kv.tokens);
  EXPECT_GT(more.windows.tokens, kv.windows.tokens);
  EXPECT_EQ(capacity(setup("gpt-oss-120b", 8, "sglang")).windows.tokens, 0);
  EXPECT_THAT(refusal("gpt-oss-120b", "sglang", request),
              testing::HasSubstr("is for compressed attention"));
  EXPECT_THAT(refusal("deepseek-v4-flash", "vllm", request),
              testing::HasSubstr("'vllm' has no pool for windows alone"));
}

// Nemotron 3 predicts by a layer of attention and one of experts, DeepSeek-V4 by one with a window
// alone; an EAGLE draft has a model's own attention, if it has kernels of such attention.
TEST(PatternedServing, DraftsAreByTheLayersOfThePredictionModule) {
  DeploymentRequest request;
  request.tp = 4;
  request.speculate = parse_speculation("mtp:1@0.8", {});
  const ServingSetup of = setup("nemotron-3-super-120b-a12b", 4, "vllm", request, "dgx-b200");
  const Model& drafts = *of.deployment.drafter;
  EXPECT_EQ(drafts.layers, 2);
  EXPECT_EQ(whole_layers(drafts), 1.0);
  const ServingSetup without = setup("nemotron-3-super-120b-a12b", 4, "vllm", {}, "dgx-b200");
  EXPECT_GT(capacity(of).blocks(), 0);
  EXPECT_LT(capacity(of).tokens, capacity(without).tokens);
  const ServingSetup v4 = setup("deepseek-v4-flash", 4, "sglang", request, "dgx-b200");
  const ServedLayers module = served_layers(*v4.deployment.drafter, v4.deployment).at(0);
  EXPECT_EQ(module.module->most_context, 128);
  EXPECT_TRUE(module.has_streams);
  request.speculate = parse_speculation("eagle3:3@0.6", {});
  EXPECT_EQ(setup("qwen3.5-35b-a3b", 4, "vllm", request).deployment.drafter->heads, 16);
  EXPECT_THAT(error_text([&] { setup("deepseek-v4-pro", 8, "vllm", request); }),
              testing::HasSubstr("no prices yet of layers that draft for deepseek-v4-pro"));
}

// DeepSeek-V4 is published in fp8 blocks with experts in fp4; its entries have one format.
TEST(PatternedServing, DeepSeekV4IsServedAsItIsPublished) {
  const Deployment plan = setup("deepseek-v4-pro", 8).deployment;
  EXPECT_EQ(plan.weights, Dtype::fp8_block);
  EXPECT_EQ(plan.attention, Dtype::fp8_block);
  EXPECT_EQ(plan.experts, Dtype::mxfp4);
  EXPECT_EQ(plan.kv, Dtype::fp8);
  DeploymentRequest request;
  request.kv = Dtype::bf16;
  EXPECT_THAT(error_text([&] { setup("deepseek-v4-pro", 8, "vllm", request); }),
              testing::HasSubstr("entries of compressed attention are in fp8"));
}

// An index over a quarter of the tokens grows with the context, a 128th of them hardly, a window
// not at all; projections, the chosen entries and the window stay.
TEST(PatternedServing, CompressedAttentionHardlyGrowsWithTheContext) {
  const ServingSetup of = setup("deepseek-v4-flash", 8);
  const ServingKernels kernels{of.system.gpu, of.engine};
  const auto time = [&](const AttentionModule& module, std::int64_t context) {
    return kernels.attention_module(Dtype::fp8_block, Dtype::fp8, 4'096, module, 8, 64, 1, context)
        .time.time;
  };
  int kinds = 0;
  for (const ServedLayers& layers : served_layers(of.model, of.deployment)) {
    const AttentionModule& module = layers.module.value();
    const double growth = time(module, 60'000) / time(module, 1'000);
    if (module.most_context > 0) {
      EXPECT_EQ(layers.layers, 2);
      EXPECT_EQ(growth, 1.0);
    } else if (module.decode == "hca_decode") {
      EXPECT_EQ(layers.layers, 20);
      EXPECT_GT(growth, 1.0);
      EXPECT_LT(growth, 1.6);
    } else {
      EXPECT_EQ(layers.layers, 21);
      EXPECT_GT(growth, 1.2);
      EXPECT_LT(growth, 4.0);
    }
    ++kinds;
  }
  EXPECT_EQ(kinds, 3);
}

// Tables of most engines have no prompts behind more than some thousand tokens; a longer context is
// never much faster, whatever table it comes from. Those of MiniMax-M3 scatter more.
TEST(PatternedServing, ModulesAreNotFasterBehindMoreTokens) {
  std::map<std::string, std::pair<double, std::string>> worst;  // By model.
  for (const std::string gpu : {"h100-sxm", "h200-sxm", "b200-sxm", "b300-sxm", "gb200", "gb300"})
    for (const std::string engine : {"vllm", "sglang", "trtllm"})
      for (const std::string name :
           {"deepseek-v4-flash", "deepseek-v4-pro", "deepseek-v3.2", "minimax-m3"}) {
        const Model model = read_model(name, {});
        const ServingKernels kernels{read_gpu(gpu, {}), read_serving_engine(engine, {})};
        for (const ServedLayers& layers : served_layers(model, {})) {
          if (!layers.module) continue;
          for (const auto& [requests, tokens] :
               {std::pair{1, 2'048}, {1, 8'192}, {8, 1}, {64, 1}}) {
            double before = 0.0;
            for (double context = 16'384; context < 1e6; context *= 1.3) {
              const double time =
                  kernels
                      .attention_module(Dtype::fp8_block, Dtype::fp8, model.hidden, *layers.module,
                                        16, requests, tokens, static_cast<std::int64_t>(context))
                      .time.time.si();
              auto& [least, where] = worst.try_emplace(name, 1.0, "").first->second;
              if (before > 0.0 && time / before < least) {
                least = time / before;
                where = gpu + " " + engine + " " + layers.module->decode + " " +
                        std::to_string(requests) + " x " + std::to_string(tokens) + " behind " +
                        std::to_string(context);
              }
              before = time;
            }
          }
        }
      }
  for (const auto& [name, of] : worst)
    EXPECT_GT(of.first, name == "minimax-m3" ? 0.78 : 0.89) << name << " " << of.second;
}

// A prompt never takes longer than one of twice, four or eight times as many tokens. Measured rows
// did: 6.6 ms a layer of 256 tokens and 4.8 of 2,048 by vLLM on GB300.
TEST(PatternedServing, ModulesTakeNoLongerForShorterPrompts) {
  for (const std::string gpu : {"h200-sxm", "b200-sxm", "gb300"})
    for (const std::string engine : {"vllm", "sglang", "trtllm"})
      for (const std::string name : {"deepseek-v3.2", "glm-5", "minimax-m3"}) {
        const Model model = read_model(name, {});
        const ServingKernels kernels{read_gpu(gpu, {}), read_serving_engine(engine, {})};
        for (const ServedLayers& layers : served_layers(model, {})) {
          if (!layers.module) continue;
          const auto time = [&](std::int64_t tokens) {
            return kernels
                .attention_module(Dtype::fp8_block, Dtype::fp8, model.hidden, *layers.module, 16, 1,
                                  tokens, tokens)
                .time.time.si();
          };
          for (const std::int64_t tokens : {256, 512, 1'024, 2'048})
            for (const std::int64_t more : {2, 4, 8})
              EXPECT_LE(time(tokens), 1.0001 * time(more * tokens))
                  << name << " " << gpu << " " << engine << " " << tokens << " x " << more;
        }
      }
}

// Streams are mixed once a layer, whatever the batch; a stage sends all four of them on.
TEST(PatternedServing, ResidualStreamsAreMixedAndSent) {
  DeploymentRequest request;
  request.tp = 4;
  request.pp = 2;
  const ServingSetup of = setup("deepseek-v4-flash", 8, "vllm", request);
  const IterationPrices prices{of.model, of.system, of.deployment, of.engine};
  const IterationPrice step = prices.price({64, 64'000, {}, 64});
  EXPECT_EQ(part(step, "streams")->count, 43);
  EXPECT_DOUBLE_EQ(part(step, "streams")->bytes.si(), 43 * 64 * 4'096 * 56 * 2.0);
  const Seconds more = prices.hop(2'000) - prices.hop(1'000);
  EXPECT_NEAR(more / (Bytes{1'000 * 4 * 4'096 * 2.0} / of.system.scale_up), 1.0, 1e-9);
  EXPECT_EQ(part(price(setup("deepseek-v3.2", 8), {64, 64'000, {}, 64}), "streams"), nullptr);
}

// All weights of DeepSeek-V4 Flash on one rank in 16 bits are twice its parameters (those that mix
// streams have 32 bits, norms and biases are left out).
TEST(PatternedServing, WeightsAreThoseOfTheParameters) {
  DeploymentRequest request;
  request.weights = request.attention = request.experts = Dtype::bf16;
  request.tp = request.dp = 1;
  const ServingSetup of = setup("deepseek-v4-flash", 1, "vllm", request);
  const double bytes = rank_weights(of.model, of.system.gpu, of.deployment).si();
  const auto streams =
      static_cast<double>(43 * layer_stream_parameters(*of.model.pattern, of.model.hidden));
  EXPECT_NEAR((bytes - 2.0 * streams) / (2.0 * 284'332'241'239.0), 1.0, 1e-4);
}

// TensorRT-LLM keeps states of as many requests as it may run, whether they come or not.
TEST(PatternedServing, StatesThatDoNotFitAreNamed) {
  DeploymentRequest request;
  request.tp = 4;
  const ServingSetup of = setup("nemotron-3-super-120b-a12b", 4, "trtllm", request, "dgx-h100");
  const std::string text =
      error_text([&] { need_kv(of.model, of.system, of.deployment, of.engine, 8'192, {}, {}); });
  EXPECT_THAT(text, testing::HasSubstr("for the states of 2,048 requests"));
  EXPECT_THAT(text, testing::HasSubstr("max_seqs 512 would do"));
}

// Layers that are alike, described as a pattern, have the model's own memory and times.
TEST(PatternedServing, APatternOfAlikeLayersIsTheModel) {
  const char* const sizes =
      R"("hidden": 4096, "vocab": 32000, "seq": 8192, "tied_embeddings": false)";
  const std::string alike =
      R"({"name": "alike", "layers": 32, "heads": 32, "kv_heads": 8, "ffn": 14336, "swiglu": true,
          "positions": "rotary", "norm": "rms", )" +
      std::string{sizes} + "}";
  const std::string pattern =
      R"({"schema": "orrery.model/1", "name": "alike", )" + std::string{sizes} + R"(,
      "mixers": {"full": {"kind": "attention", "heads": 32, "kv_heads": 8, "head_dim": 128}},
      "ffns": {"mlp": {"width": 14336}}, "pattern": [[32, ["full+mlp"]]]})";
  const auto served = [](const std::string& json) {
    const Model model = parse_model(JsonValue::parse(json, "m.json"));
    return make_serving_setup(model, "dgx-h200", "vllm", {}, 2, {});
  };
  const ServingSetup one = served(alike), other = served(pattern);
  const KvCapacity a = capacity(one), b = capacity(other);
  EXPECT_EQ(a.memory.weights, b.memory.weights);
  EXPECT_EQ(a.bytes_per_token, b.bytes_per_token);
  EXPECT_EQ(a.tokens, b.tokens);
  const Iteration mixed{16, 16'000, {{300, 100}}, 17};
  EXPECT_EQ(price(one, mixed).step, price(other, mixed).step);
}

// FlashInfer's benchmark of DeepSeek's experts on B300 (pull request 5301): in fp8 1.03 times as
// long as in nvfp4 for a token and 1.5 times from 32 on, in bf16 2.6 times.
TEST(PatternedServing, ExpertsOfOtherFormatsTakeTheirBytesLonger) {
  const ServingSetup of = setup("deepseek-v3", 8, "sglang", {}, "dgx-b300");
  const ServingKernels kernels{of.system.gpu, of.engine};
  const auto ratio = [&](Dtype format, std::int64_t tokens) {
    const std::array<std::int64_t, 7> sizes{7168, 2048, 8, 256, 1, 8, tokens};
    return kernels.trtllm_gen_experts(format, sizes).time /
           kernels.trtllm_gen_experts(Dtype::nvfp4, sizes).time;
  };
  EXPECT_NEAR(ratio(Dtype::fp8, 1), 1.03, 0.2);
  EXPECT_NEAR(ratio(Dtype::fp8, 64), 1.5, 0.2);
  EXPECT_NEAR(ratio(Dtype::bf16, 64), 2.6, 0.5);
}

// Falcon-H1: each of 44 layers has keys and values of two heads, 1,024 B a token, and a state; both
// mixers add their sums over the ranks.
TEST(PatternedServing, MixersSideBySideAreServedBoth) {
  DeploymentRequest request;
  request.tp = 2;
  const ServingSetup one = setup("falcon-h1-7b", 1),
                     two = setup("falcon-h1-7b", 2, "vllm", request);
  EXPECT_EQ(capacity(one).bytes_per_token, 44 * 1'024);
  EXPECT_EQ(capacity(two).bytes_per_token, 44 * 512);
  for (const ServingSetup* of : {&one, &two}) {
    const IterationPrice step = price(*of, {16, 16'000, {}, 16});
    for (const char* op : {"gemm.qkv", "gemm.mixer_in", "gemm.out", "gemm.mixer_out",
                           "decode_attention", "state_step", "convolution_step"}) {
      ASSERT_TRUE(part(step, op)) << op;
      EXPECT_EQ(part(step, op)->count, 44) << op;
    }
  }
  const IterationPrice step = price(two, {16, 16'000, {}, 16});
  EXPECT_EQ(part(step, "all_reduce")->count, 3 * 44);
  // Weights in 16 bits: all parameters once.
  EXPECT_NEAR(rank_weights(one.model, one.system.gpu, one.deployment).si(),
              2.0 * static_cast<double>(count_parameters(one.model).total), 1e7);
}

// MiniMax-M3: 60 layers with 4 key heads of 128 channels, of which a rank has one at least; 57 with
// an index key of 128 channels in 16 bits, which all ranks have.
TEST(PatternedServing, BlocksChosenByAnIndexKeepKeysOfTwoKinds) {
  for (const auto& [tp, heads] : {std::pair{1, 4}, {2, 2}, {4, 1}, {8, 1}})
    for (const auto& [kv, bytes] : {std::pair{Dtype::bf16, 2}, {Dtype::fp8, 1}}) {
      DeploymentRequest request;
      request.tp = tp;
      request.kv = kv;
      request.ep = tp;
      request.weights = Dtype::fp8_block;
      const ServingSetup of = setup("minimax-m3", tp, "vllm", request);
      EXPECT_EQ(kv_bytes_per_token(of.model, of.deployment),
                60 * heads * 2 * 128 * bytes + 57 * 256)
          << tp;
    }
}

// Ranks beyond the four key heads hold copies of them, and every rank a copy of the index heads:
// eight ranks hold 57 layers' 6,144 x 5 x 128 of the latter eight times, and keys and values of 60
// twice.
TEST(PatternedServing, RanksCopyKeyHeadsAndIndexes) {
  const auto weights = [](int tp) {
    DeploymentRequest request;
    request.tp = tp;
    request.weights = request.attention = request.experts = Dtype::bf16;
    const ServingSetup of = setup("minimax-m3", tp, "vllm", request);
    return tp * rank_weights(of.model, of.system.gpu, of.deployment).si();
  };
  const double index = 57 * 6'144.0 * 5 * 128 * 2, keys = 60 * 6'144.0 * 2 * 4 * 128 * 2;
  const double router = weights(4) - weights(2) - 2 * index;  // Norms and routers are copies, too.
  EXPECT_GE(router, 0.0);
  EXPECT_NEAR(weights(8) - weights(4), 4 * index + keys + 2 * router, 2e6);
}

// From the 2,176 tokens that are seen on, only the index keys of a step grow.
TEST(PatternedServing, BlocksChosenByAnIndexGrowSlowly) {
  for (const std::string engine : {"vllm", "sglang"}) {
    DeploymentRequest request;
    request.weights = Dtype::fp8_block;
    const ServingSetup of = setup("minimax-m3", 8, engine, request);
    const auto module = [&](std::int64_t context) {
      const IterationPrices prices{of.model, of.system, of.deployment, of.engine};
      return part(prices.price({16, 16 * context, {}, 16}), "decode_attention.module")->time.si();
    };
    EXPECT_LT(module(65'536) / module(2'176), 3.0) << engine;
    EXPECT_GT(module(65'536) / module(2'176), 1.0) << engine;
  }
}

TEST(PatternedServing, SaysWhatIsNotServed) {
  using testing::HasSubstr;
  EXPECT_THAT(refusal("qwen3.5-35b-a3b", "vllm-2024"),
              HasSubstr("the engine 'vllm-2024' serves no mixers with a state"));
  const std::string file = testing::TempDir() + "two_attentions.json";
  std::ofstream{file} << R"({"hidden": 2048, "vocab": 32768, "seq": 4096,
      "mixers": {"m": {"kind": "parallel", "of": [
          {"kind": "attention", "heads": 16, "kv_heads": 8, "head_dim": 128},
          {"kind": "attention", "heads": 8, "kv_heads": 8, "head_dim": 128, "window": 1024}]}},
      "ffns": {"mlp": {"width": 5632}}, "pattern": [[2, ["m+mlp"]]]})";
  EXPECT_THAT(refusal(file, "sglang"),
              HasSubstr("serving has no prices yet of such parallel layers"));
  DeploymentRequest request;
  request.states = Dtype::bf16;
  EXPECT_THAT(refusal("llama3-8b", "vllm", request), HasSubstr("no mixer that keeps a state"));
  request = {};
  request.state_ratio = 0.5;
  EXPECT_THAT(refusal("qwen3.5-35b-a3b", "vllm", request),
              HasSubstr("does not share its memory so"));
  request = {};
  request.host_kv = Bytes{64e9};
  EXPECT_THAT(refusal("qwen3.5-35b-a3b", "vllm", request), HasSubstr("are of no use"));
  request = {};
  request.tp = 3;
  EXPECT_THAT(refusal("qwen3.5-35b-a3b", "vllm", request), HasSubstr("cannot be cut into 3"));
  request = {};
  request.trtllm_gen = true;
  EXPECT_THAT(refusal("qwen3.5-35b-a3b", "sglang", request),
              HasSubstr("the GPU 'h200-sxm' has no such kernels"));
}

}  // namespace
}  // namespace orrery::patterned_serving_test
