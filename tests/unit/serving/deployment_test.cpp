#include "sim/serving/deployment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/core/catalog.hpp"

namespace orrery::deployment_test {
namespace {

Deployment deployment(const std::string& model, const std::string& system,
                      const DeploymentRequest& request, int gpus,
                      const std::string& engine = "vllm") {
  return make_deployment(read_model(model, {}), read_system(system, {}),
                         read_serving_engine(engine, {}), request, gpus, {"", ""});
}

std::string refusal(const std::string& model, const std::string& system,
                    const DeploymentRequest& request, int gpus,
                    const std::string& engine = "vllm") {
  try {
    deployment(model, system, request, gpus, engine);
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

TEST(Deployment, TensorParallelismTakesTheGpusThatNothingElseDoes) {
  EXPECT_EQ(deployment("llama3.1-70b", "dgx-h200", {}, 8).tp, 8);
  DeploymentRequest request;
  request.replicas = 4;
  EXPECT_EQ(deployment("llama3.1-70b", "dgx-h200", request, 8).tp, 2);
  request = {};
  request.tp = 2;
  EXPECT_EQ(deployment("llama3.1-70b", "dgx-h200", request, 8).replicas, 4);
}

// TensorRT-LLM's max_batch_size is of each batch, vLLM's max_num_seqs of all that take turns.
TEST(Deployment, ABatchOfAPipelineHasItsLimitOrAShareOfIt) {
  DeploymentRequest request;
  request.pp = 4;
  request.max_seqs = 100;
  const auto most = [&](const std::string& engine) {
    return batch_limit(read_serving_engine(engine, {}),
                       deployment("llama3.1-70b", "dgx-h200", request, 8, engine));
  };
  EXPECT_EQ(most("trtllm"), 100);
  EXPECT_EQ(most("vllm"), 25);
  request.max_seqs = 3;
  EXPECT_EQ(most("vllm"), 1);
}

// vLLM's copies agree on each iteration before it, where they share experts.
TEST(Deployment, CopiesThatShareExpertsMayShowTheirHost) {
  const auto hides = [](const std::string& model, const std::string& engine, int copies) {
    DeploymentRequest request;
    request.dp = copies;
    if (copies > 1) request.tp = 1;
    return hides_host(read_model(model, {}), read_serving_engine(engine, {}),
                      deployment(model, "dgx-h200", request, 8, engine));
  };
  EXPECT_TRUE(hides("qwen3-30b-a3b", "vllm", 1));
  EXPECT_FALSE(hides("qwen3-30b-a3b", "vllm", 2));
  EXPECT_TRUE(hides("qwen3-30b-a3b", "trtllm", 2));
  EXPECT_FALSE(hides("qwen3-30b-a3b", "vllm-2025", 1));
}

TEST(Deployment, ExpertsFillTheGpusOfAStage) {
  DeploymentRequest request;
  request.tp = 8;
  const Deployment sharded = deployment("deepseek-v3", "dgx-h200", request, 8);
  EXPECT_EQ(sharded.ep, 1);
  EXPECT_EQ(sharded.moe_tp, 8);
  request.ep = 4;
  EXPECT_EQ(deployment("deepseek-v3", "dgx-h200", request, 8, "sglang").moe_tp, 2);
  request = {};
  request.tp = 1;
  request.dp = 8;
  const Deployment copies = deployment("deepseek-v3", "dgx-h200", request, 8);
  EXPECT_EQ(copies.ep, 8);
  EXPECT_EQ(copies.moe_tp, 1);
}

// vLLM's enable_expert_parallel shares experts over tp x dp; SGLang's ep_size over any divisor.
TEST(Deployment, VllmSharesExpertsOverAllRanksOrNone) {
  DeploymentRequest request;
  request.tp = 8;
  for (const int ep : {2, 4}) {
    request.ep = ep;
    EXPECT_EQ(refusal("deepseek-v3", "dgx-h200", request, 8),
              "--ep: the engine 'vllm' shares experts over all 8 ranks of a stage or over none; "
              "use --ep 1");
    EXPECT_EQ(deployment("deepseek-v3", "dgx-h200", request, 8, "sglang").moe_tp, 8 / ep);
  }
  for (const int ep : {1, 8}) {
    request.ep = ep;
    EXPECT_EQ(deployment("deepseek-v3", "dgx-h200", request, 8).ep, ep);
  }
}

// "The output_size of gate's and up's weight = 192 is not divisible by weight quantization block_n
// = 128": Qwen3-235B's experts of 1,536 columns over 8 ranks, in vLLM and in SGLang.
TEST(Deployment, Fp8BlocksAreCutBetweenBlocks) {
  DeploymentRequest request;
  request.weights = Dtype::fp8_block;
  const auto feasible = [&](const std::string& model, const std::string& engine, int tp, int ep) {
    request.tp = tp;
    request.ep = ep;
    try {
      deployment(model, "dgx-h200", request, 8, engine);
    } catch (const Error&) {
      return false;
    }
    return true;
  };
  for (const char* engine : {"vllm", "sglang"}) {
    for (const int tp : {1, 2, 4, 8}) {
      EXPECT_EQ(feasible("qwen3-235b-a22b", engine, tp, 1), 1536 / tp % 128 == 0) << tp;
      EXPECT_EQ(feasible("qwen3-30b-a3b", engine, tp, 1), 768 / tp % 128 == 0) << tp;
      EXPECT_TRUE(feasible("qwen3-235b-a22b", engine, tp, tp)) << tp;
      EXPECT_TRUE(feasible("deepseek-v3", engine, tp, 1)) << tp;
    }
  }
  EXPECT_TRUE(feasible("qwen3-235b-a22b", "trtllm", 8, 1));
  request.tp = 8;
  request.ep = 1;
  EXPECT_EQ(refusal("qwen3-235b-a22b", "dgx-h200", request, 8),
            "--moe_tp: 1536 columns of an expert over 8 ranks do not fall between fp8 blocks of "
            "128, which the engine 'vllm' needs; use --ep 8");
  request.weights = Dtype::fp8;  // A scale a tensor.
  EXPECT_EQ(deployment("qwen3-235b-a22b", "dgx-h200", request, 8).moe_tp, 8);
}

TEST(Deployment, ABalancerNeedsExpertsOverRanks) {
  DeploymentRequest request;
  request.tp = 8;
  request.eplb = true;
  EXPECT_EQ(refusal("deepseek-v3", "dgx-h200", request, 8),
            "--eplb: needs experts and attention over ranks (dp and ep above 1); leave it out, or "
            "add --dp and --ep");
  request.eplb.reset();
  request.redundant_experts = 32;
  EXPECT_EQ(refusal("deepseek-v3", "dgx-h200", request, 8),
            "--redundant_experts: is for a balancer of experts; add --eplb true");
  request = {};
  request.tp = 1;
  request.dp = 72;
  request.eplb = true;
  EXPECT_EQ(refusal("deepseek-v3", "dgx-h100", request, 72),
            "--ep: 256 experts cannot be cut into 72; use --eplb true --redundant_experts 32");
  request.redundant_experts = 32;
  EXPECT_EQ(deployment("deepseek-v3", "dgx-h100", request, 72).ep, 72);
  request.dp = 8;
  request.two_batch = true;
  EXPECT_TRUE(deployment("deepseek-v3", "dgx-h100", request, 8).two_batch);
  request.eplb.reset();
  request.redundant_experts.reset();
  EXPECT_EQ(refusal("deepseek-v3", "dgx-h100", request, 8),
            "--two_batch: hides the all-to-all of experts, which copies of attention (dp) have "
            "over more than 8 ranks, or with --eplb true; leave it out");
}

// SGLang's chunk of prompts is of all attention ranks together, and by the GPU's memory; so is its
// limit of requests for DeepSeek-V4.
TEST(Deployment, AttentionRanksShareSglangsDefaults) {
  struct Case {
    const char* model;
    const char* system;
    int dp;
    std::int64_t budget, max_seqs;
  };
  for (const Case& one : {Case{"deepseek-v3", "dgx-h200", 1, 8192, 2048},
                          {"deepseek-v3", "dgx-h200", 8, 1024, 2048},
                          {"deepseek-v3", "dgx-b200", 8, 2048, 2048},
                          {"deepseek-v4-flash", "dgx-b200", 4, 4096, 64},
                          {"deepseek-v4-flash", "dgx-b200", 1, 16384, 256},
                          {"llama3.1-8b", "l40s-pcie", 1, 4096, 2048}}) {
    DeploymentRequest request;
    request.dp = one.dp;
    request.tp = 8 / one.dp;
    const Deployment plan = deployment(one.model, one.system, request, 8, "sglang");
    EXPECT_EQ(plan.budget, one.budget) << one.model << one.system << one.dp;
    EXPECT_EQ(plan.max_seqs, one.max_seqs) << one.model << one.system << one.dp;
    request.budget = 5000;
    request.max_seqs = 100;
    EXPECT_EQ(deployment(one.model, one.system, request, 8, "sglang").budget, 5000);
    EXPECT_EQ(deployment(one.model, one.system, request, 8, "sglang").max_seqs, 100);
  }
  DeploymentRequest request;
  request.dp = 8;
  request.tp = 1;
  EXPECT_EQ(deployment("deepseek-v3", "dgx-h200", request, 8, "vllm").budget, 8192);
  request.prefill_delay = 30;
  EXPECT_EQ(deployment("deepseek-v3", "dgx-h200", request, 8, "sglang").prefill_delay, 30);
  request.dp.reset();
  EXPECT_EQ(refusal("deepseek-v3", "dgx-h200", request, 8),
            "--prefill_delay: is for attention ranks that share experts: the model has none, or dp "
            "is 1; leave it out, or add --dp");
  request.dp = 8;
  EXPECT_EQ(refusal("deepseek-v3", "dgx-h200", request, 8, "vllm"),
            "--prefill_delay: the engine 'vllm' begins a prompt as soon as its rank can; leave it "
            "out, or use sglang");
  request = {};
  request.receive_interval = 30;
  EXPECT_EQ(deployment("deepseek-v3", "dgx-h200", request, 8, "sglang").receive_interval, 30);
  EXPECT_EQ(refusal("deepseek-v3", "dgx-h200", request, 8, "vllm"),
            "--receive_interval: the engine 'vllm' looks for requests in every step; leave it out, "
            "or use sglang");
  request.dp = 8;
  request.tp = 1;
  EXPECT_EQ(
      refusal("deepseek-v3", "dgx-h200", request, 8, "sglang"),
      "--receive_interval: is modelled for one attention rank and one stage; leave it out, or "
      "use dp 1 and pp 1");
}

// The last graph is for the largest batch, which the requests and the tokens of an iteration limit.
TEST(Deployment, GraphsHoldTheLargestBatch) {
  DeploymentRequest request;
  request.graph_sizes = std::vector<std::int64_t>{1, 2, 256, 512, 1024};
  request.max_seqs = 384;
  const auto of = [&] { return deployment("llama3.1-8b", "dgx-h200", request, 8, "trtllm"); };
  EXPECT_EQ(of().graph_sizes, (std::vector<std::int64_t>{1, 2, 256, 384}));
  EXPECT_EQ(of().padded(3), 256);
  EXPECT_EQ(of().padded(300), 384);
  EXPECT_EQ(of().padded(500), 500);
  request.budget = 300;
  EXPECT_EQ(of().graph_sizes.back(), 300);
  request = {};
  request.graph_sizes = std::vector<std::int64_t>{2, 1};
  EXPECT_EQ(refusal("llama3.1-8b", "dgx-h200", request, 8, "trtllm"),
            "--graph_sizes: is not ascending; write it like 1/2/4/8/16");
  EXPECT_EQ(refusal("llama3.1-8b", "dgx-h200", request, 8, "vllm"),
            "--graph_sizes: the engine 'vllm' has graphs at short distances; leave it out, or use "
            "trtllm");
}

// enable_attention_dp is of all ranks.
TEST(Deployment, TensorrtCopiesAttentionOnAllRanksOrOnNone) {
  DeploymentRequest request;
  request.tp = 4;
  request.dp = 4;
  request.ep = 16;
  EXPECT_EQ(refusal("deepseek-v3", "dgx-h200", request, 16, "trtllm"),
            "--dp: the engine 'trtllm' copies attention on all 16 ranks of a stage or on none; "
            "leave out degrees");
  EXPECT_EQ(deployment("deepseek-v3", "dgx-h200", request, 16, "sglang").dp, 4);
}

TEST(Deployment, SaysWhatLiesBeyondItsRange) {
  const auto says = [](const char* system, int tp, int gpus, int dp = 1) {
    DeploymentRequest request;
    request.tp = tp;
    request.dp = dp;
    const System of = read_system(system, {});
    const Model model = read_model("deepseek-v3", {});
    return !unmeasured_notes(of, model, deployment("deepseek-v3", system, request, gpus)).empty();
  };
  EXPECT_TRUE(says("dgx-h100", 16, 16));
  EXPECT_TRUE(says("dgx-h100", 16, 32));
  EXPECT_FALSE(says("dgx-h100", 8, 32));
  EXPECT_FALSE(says("gb200-nvl72", 16, 16));
  EXPECT_TRUE(says("dgx-h100", 1, 32, 32));
  EXPECT_FALSE(says("dgx-h100", 1, 32, 8));
}

TEST(Deployment, SmallGpusHaveSmallerIterations) {
  EXPECT_EQ(deployment("llama3.1-8b", "dgx-h100", {}, 1).budget, 8192);
  EXPECT_EQ(deployment("llama3.1-8b", "dgx-a100-80gb", {}, 1).budget, 2048);
  EXPECT_EQ(deployment("llama3.1-8b", "l40s-pcie", {}, 1).max_seqs, 256);
}

TEST(Deployment, RefusesWhatDoesNotDivide) {
  DeploymentRequest request;
  request.tp = 3;
  EXPECT_EQ(refusal("llama3.1-8b", "dgx-h100", request, 3),
            "--tp: 32 heads cannot be cut into 3; use --tp 1");
  request.tp = 2;
  EXPECT_EQ(refusal("llama3.1-8b", "dgx-h100", request, 3),
            "--tp: replicas of 2 GPUs (tp 2 x pp 1 x dp 1) do not fill 3 GPUs; use --gpus 2 or "
            "--tp 1");
  request = {};
  request.pp = 64;
  EXPECT_EQ(refusal("llama3.1-8b", "dgx-h100", request, 64),
            "--pp: the model has 32 layers for 64 stages; use 32");
}

TEST(Deployment, RefusesExpertsOfAModelWithoutAny) {
  DeploymentRequest request;
  request.ep = 2;
  EXPECT_EQ(refusal("llama3.1-8b", "dgx-h100", request, 2),
            "--ep: the model has no experts; leave it out");
  request = {};
  request.experts = Dtype::fp8;
  EXPECT_EQ(refusal("llama3.1-8b", "dgx-h100", request, 1),
            "--experts: the model has no experts; leave it out");
}

TEST(Deployment, RefusesAFormatThatEngineOrGpuLacks) {
  DeploymentRequest request;
  request.kv = Dtype::nvfp4;
  EXPECT_EQ(refusal("llama3.1-8b", "dgx-b200", request, 1),
            "--kv: the engine 'vllm' has no nvfp4; it has bf16, fp16, fp8");
  request = {};
  request.weights = Dtype::nvfp4;
  EXPECT_EQ(refusal("llama3.1-8b", "dgx-h100", request, 1),
            "--weights: the GPU 'h100-sxm' has no units for nvfp4; use fp8, bf16 or int4");
}

TEST(Deployment, Nf4HasDoublyQuantisedScalesWhereTheEngineKeepsThem) {
  DeploymentRequest request;
  request.weights = Dtype::nf4_dq;
  EXPECT_EQ(refusal("llama3.1-8b", "dgx-h100", request, 1),
            "--weights: the engine 'vllm' has no nf4_dq; it has bf16, fp16, fp8, fp8_block, nvfp4, "
            "mxfp4, mxfp8, int8, int4, int4_g32, nf4, nvfp4a16");
}

TEST(Deployment, KeysAreReadFromFlagsAndFiles) {
  DeploymentRequest request;
  set_deployment_flag(request, "tp", "4");
  read_deployment(request, JsonValue::parse(R"({"weights": "nvfp4", "kv_share": 0.85})", "f"));
  EXPECT_EQ(request.tp, 4);
  EXPECT_EQ(request.weights, Dtype::nvfp4);
  EXPECT_EQ(request.kv_share, 0.85);
  EXPECT_THROW(read_deployment(request, JsonValue::parse(R"({"tpp": 2})", "f")), Error);
  EXPECT_THROW(set_deployment_flag(request, "tp", "0"), Error);
}

TEST(ServingEngine, EveryFileOfTheCatalogIsRead) {
  const auto names = list_catalog("workloads/engines");
  EXPECT_EQ(names.size(), 9u);
  for (const std::string& name : names) {
    const ServingEngine engine = read_serving_engine(name, {});
    EXPECT_EQ(engine.name, name);
    EXPECT_FALSE(engine.kernels.empty());
  }
}

TEST(ServingEngine, AFigureWithoutASourceIsRefused) {
  const JsonValue file = JsonValue::read_file(find_in_catalog("workloads/engines", "vllm", {}));
  std::string text = file.compact();
  const std::string client = R"("client":{"source":)";
  ASSERT_NE(text.find(client), text.npos);
  text.replace(text.find(client), client.size(), R"("client":{"sauce":)");
  EXPECT_THROW(parse_serving_engine(JsonValue::parse(text, "engine.json")), Error);
}

}  // namespace
}  // namespace orrery::deployment_test
