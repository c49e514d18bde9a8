#include "sim/layers/adapters.hpp"

#include <gtest/gtest.h>

#include "sim/layers/layer_activations.hpp"
#include "sim/layers/layer_ops.hpp"
#include "sim/layers/memory.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "sim/layers/shard_units.hpp"
#include "sim/layers/step_cost.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery {
namespace {

constexpr std::int64_t hidden = 1024, ffn = 4096, vocab = 1024, tokens = 512;

Scenario tuned(PlanRequest request, int gpus = 1,
               const Model& model = small_gpt(4, hidden, 8, vocab),
               const std::string& software = "megatron-core") {
  request.software = software;
  return scenario_of(model, read_system("dgx-b200", test_place), request, gpus);
}
PlanRequest lora(const LoraTargets& targets, int rank = 16) {
  PlanRequest request = plan_request(1, 1, 1, 8, tokens, "megatron-core");
  request.finetune = Finetune::lora;
  request.lora_rank = rank;
  request.lora_targets = targets;
  return request;
}
const LoraTargets all{LoraTarget::qkv, LoraTarget::proj, LoraTarget::fc1, LoraTarget::fc2};

double bytes_of(const Ops& ops, std::string_view name) {
  double sum = 0.0;
  for (const Op& op : ops)
    if (op.name == name) sum += op.bytes.si();
  return sum;
}
int count(const Ops& ops, GemmPass pass) {
  return static_cast<int>(std::count_if(ops.begin(), ops.end(), [&](const Op& op) {
    return op.kind == Op::Kind::gemm && op.pass == pass;
  }));
}

// A frozen layer multiplies forward and for the gradient of its input, and by nothing else.
TEST(Adapters, FrozenWeightsHaveNoGradients) {
  const Scenario full = tuned(plan_request(1, 1, 1, 8, tokens, "megatron-core"));
  const Scenario frozen = tuned(lora({LoraTarget::qkv}));
  const Ops of_full = layer_backward(full, LayerKind::dense);
  const Ops of_frozen = layer_backward(frozen, LayerKind::dense);
  EXPECT_EQ(count(of_full, GemmPass::wgrad), 4);
  EXPECT_EQ(count(of_frozen, GemmPass::wgrad), 0);
  EXPECT_EQ(count(of_frozen, GemmPass::dgrad), count(of_full, GemmPass::dgrad));
  EXPECT_EQ(count(layer_forward(frozen, LayerKind::dense), GemmPass::forward), 4);
  for (const Op& op : of_frozen) EXPECT_NE(op.pass, GemmPass::wgrad) << op.name;
  EXPECT_TRUE(embedding_backward(frozen).empty());
  EXPECT_EQ(count(head_backward(frozen), GemmPass::wgrad), 0);
  EXPECT_EQ(count(head_backward(frozen), GemmPass::dgrad), 1);
}

// Embedding and head that train beside adapters have gradients as in full training.
TEST(Adapters, TablesThatTrain) {
  PlanRequest request = lora({LoraTarget::qkv});
  const RankParameters frozen = parameters_on_rank(tuned(request), 0);
  request.train_tables = true;
  const Scenario scenario = tuned(request);
  const Scenario full = tuned(plan_request(1, 1, 1, 8, tokens, "megatron-core"));
  EXPECT_EQ(count(head_backward(scenario), GemmPass::wgrad), 1);
  EXPECT_EQ(embedding_backward(scenario).size(), embedding_backward(full).size());
  EXPECT_EQ(count(layer_backward(scenario, LayerKind::dense), GemmPass::wgrad), 0);
  const RankParameters trained = parameters_on_rank(scenario, 0);
  EXPECT_EQ(trained.held(), frozen.held());
  EXPECT_EQ(trained.dense - frozen.dense, frozen.frozen.others);
  EXPECT_GE(frozen.frozen.others, 2 * hidden * vocab);
}

// The traffic of one adapter beside the output projection, h x h, one by one and fused.
TEST(Adapters, TrafficInClosedForm) {
  const double x = 2.0 * tokens * hidden, inner = 2.0 * tokens * 16,
               weights = 2.0 * 16 * 2 * hidden;
  for (const bool dropout : {false, true}) {
    PlanRequest request = lora({LoraTarget::proj});
    request.lora_dropout = dropout;
    const double dropped = dropout ? 2.0 * x + x / 2.0 : 0.0;
    Scenario one_by_one = tuned(request);
    const double accumulated = one_by_one.software.accumulate_bytes / 2.0 * weights;
    const Ops forward = layer_forward(one_by_one, LayerKind::dense);
    EXPECT_DOUBLE_EQ(bytes_of(forward, "lora"), dropped + 4.0 * x + 2.0 * inner + weights);
    EXPECT_DOUBLE_EQ(bytes_of(forward, "lora_sum"), 3.0 * x);
    const Ops backward = layer_backward(one_by_one, LayerKind::dense);
    EXPECT_DOUBLE_EQ(bytes_of(backward, "lora_bwd"),
                     dropped + 6.0 * x + 4.0 * inner + 2.0 * weights + accumulated);
    EXPECT_DOUBLE_EQ(bytes_of(backward, "lora_grad_sum"), 3.0 * x);
    one_by_one.software.fused_adapters = true;
    const double mask = dropout ? x / 2.0 : 0.0;
    EXPECT_DOUBLE_EQ(bytes_of(layer_forward(one_by_one, LayerKind::dense), "lora"),
                     2.0 * x + mask + inner + weights);
    EXPECT_DOUBLE_EQ(bytes_of(layer_backward(one_by_one, LayerKind::dense), "lora_bwd"),
                     5.0 * x + mask + weights + accumulated);
  }
}

// A host that reads from the GPU whose tokens an adapter's are leaves it idle once for each adapter
// of a forward pass, and a host that goes through the tokens of a loss once for each token.
TEST(Adapters, WaitsForTheHostInClosedForm) {
  const auto idle = [](const Ops& ops) {
    Seconds sum;
    for (const Op& op : ops) sum += op.idle;
    return sum;
  };
  Scenario scenario = tuned(lora(all));
  EXPECT_EQ(idle(layer_forward(scenario, LayerKind::dense)), Seconds{});
  scenario.software.adapter_wait = microseconds(100);
  scenario.software.loss_wait = microseconds(10);
  EXPECT_EQ(idle(layer_forward(scenario, LayerKind::dense)), 4.0 * microseconds(100));
  EXPECT_EQ(idle(layer_backward(scenario, LayerKind::dense)), Seconds{});
  EXPECT_EQ(idle(head_backward(scenario)), static_cast<double>(tokens) * microseconds(10));
  scenario.software.recomputes_logits = true;
  EXPECT_EQ(count(head_backward(scenario), GemmPass::forward), 1);
  scenario.system.host_slowdown = 2.0;
  EXPECT_EQ(idle(layer_forward(scenario, LayerKind::dense)), 8.0 * microseconds(100));
}

// r (in + out) for each matrix; the base is what full training trains.
TEST(Adapters, ParametersInClosedForm) {
  const RankParameters full =
      parameters_on_rank(tuned(plan_request(1, 1, 1, 8, tokens, "megatron-core")), 0);
  for (const int rank : {1, 16, 64}) {
    const RankParameters some = parameters_on_rank(tuned(lora(all, rank)), 0);
    EXPECT_EQ(some.dense, 4 * rank * ((hidden + 3 * hidden) + 2 * hidden + 2 * (hidden + ffn)));
    EXPECT_EQ(some.experts, 0);
    EXPECT_EQ(some.frozen.sum(), full.sum());
    EXPECT_EQ(some.held(), full.sum() + some.dense);
    const RankParameters one = parameters_on_rank(tuned(lora({LoraTarget::proj}, rank)), 0);
    EXPECT_EQ(one.dense, 4 * rank * 2 * hidden);
    EXPECT_EQ(one.frozen, some.frozen);
  }
  // Tensor ranks each have the whole of the side that is not cut.
  PlanRequest cut = lora({LoraTarget::qkv, LoraTarget::proj});
  cut.tp = 2;
  EXPECT_EQ(parameters_on_rank(tuned(cut, 2), 0).dense,
            4 * 16 * ((hidden + 3 * hidden / 2) + (hidden / 2 + hidden)));
}

// Llama 2 70B in fp8, MLPerf's adapters on attention: a layer keeps 28.5 h bytes a token (block
// inputs 4 h, queries to output 4.5 h, the activation's input 14 h, inputs of adapters with their
// masks 6 h), measured are 27.6 h.
TEST(Adapters, ActivationsOfMlperf) {
  Model llama = read_model("llama2-70b", test_place);
  PlanRequest request = lora({LoraTarget::qkv, LoraTarget::proj});
  request.lora_dropout = true;
  request.dtype = Dtype::fp8;
  request.base_format = BaseFormat::fp8;
  request.seq = 8192;
  request.gbs = 1;
  const Scenario scenario = tuned(request, 1, llama, "megatron-bridge");
  const Bytes layer = layer_activations(scenario, Recompute::none, LayerKind::dense);
  const double log_sum_exp = 4.0 * 8192 * 64;
  EXPECT_NEAR((layer.si() - log_sum_exp) / 8192 / 8192, 28.5, 0.01);
  // 69 billion weights of a byte, tables of two.
  EXPECT_NEAR(memory_of(scenario).stages[0].weights.si() / 1e9, 69.6, 0.1);
}

// A weight of four bits is made 16 before each of three passes, and multiplies as before.
TEST(Adapters, FourBitsAreMadeSixteen) {
  PlanRequest request = lora(all);
  request.finetune = Finetune::qlora;
  request.base_format = BaseFormat::int4;
  const Scenario scenario = tuned(request);
  const double weights = 4.0 * hidden * hidden + 2.0 * hidden * ffn;
  const double bytes = (4.0 + 20.0 / 128.0) / 8.0 + 2.0;
  EXPECT_DOUBLE_EQ(bytes_of(layer_forward(scenario, LayerKind::dense), "dequantise"),
                   bytes * weights);
  EXPECT_DOUBLE_EQ(bytes_of(layer_backward(scenario, LayerKind::dense), "dequantise"),
                   bytes * weights);
  EXPECT_EQ(bytes_of(layer_forward(tuned(lora(all)), LayerKind::dense), "dequantise"), 0.0);
  EXPECT_NEAR(stored_bytes(BaseFormat::nf4), 4.127 / 8.0, 1e-4);
}

// Shards of frozen weights are gathered in their format; adapters alone are reduced.
TEST(Adapters, ShardsAreGatheredInTheirFormat) {
  PlanRequest request = lora(all);
  request.zero = 3;
  const Scenario scenario = tuned(request, 4);
  const RankParameters held = parameters_on_rank(scenario, 0);
  const double ratio = 2.0 / scenario.software.weight_bytes;
  EXPECT_NEAR(static_cast<double>(gathered(scenario, held).sum()),
              static_cast<double>(held.sum()) + ratio * static_cast<double>(held.frozen.sum()),
              4.0);
  request.finetune = Finetune::qlora;
  const Scenario four = tuned(request, 4);
  EXPECT_LT(gathered(four, held).sum(), gathered(scenario, held).sum());
}

// 4 flop a weight and token where full training has 6; attention keeps its backward pass.
TEST(Adapters, FlopAsNvidiaCounts) {
  const Model model = small_gpt(4, hidden, 8, vocab);
  const double full = model_flop(model, 1, tokens, true).si();
  const double frozen = model_flop(model, 1, tokens, true, false).si();
  const double weights = 4.0 * (4.0 * hidden * hidden + 2.0 * hidden * ffn) + hidden * vocab;
  EXPECT_DOUBLE_EQ(full - frozen, 2.0 * tokens * weights);
}

// Each refusal names the way out.
TEST(Adapters, Refusals) {
  const auto refusal = [](void (*change)(PlanRequest&), int gpus = 1) {
    PlanRequest request = lora(all);
    change(request);
    try {
      tuned(request, gpus);
    } catch (const Error& error) {
      return std::string{error.what()};
    }
    return std::string{};
  };
  EXPECT_EQ(refusal([](PlanRequest&) {}), "");
  EXPECT_NE(refusal([](PlanRequest& r) { r.base_format = BaseFormat::nf4; }).find("finetune=qlora"),
            std::string::npos);
  EXPECT_NE(refusal([](PlanRequest& r) { r.base_format = BaseFormat::fp8; }).find("dtype=fp8"),
            std::string::npos);
  EXPECT_NE(refusal([](PlanRequest& r) {
              r.finetune = Finetune::qlora;
              r.base_format = BaseFormat::fp8;
            }).find("base_format=nf4 or int4"),
            std::string::npos);
  EXPECT_NE(refusal([](PlanRequest& r) { r.finetune = Finetune::qlora, r.tp = 2; }, 2).find("tp=1"),
            std::string::npos);
  EXPECT_NE(refusal([](PlanRequest& r) {
              r.finetune = Finetune::full;
              r.base_format = BaseFormat::nf4;
            }).find("frozen weights"),
            std::string::npos);
  EXPECT_NE(refusal([](PlanRequest& r) { r.dtype = Dtype::fp32; }).find("use dtype=bf16"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery
