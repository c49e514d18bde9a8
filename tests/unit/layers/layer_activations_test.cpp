#include "sim/layers/layer_activations.hpp"

#include <gtest/gtest.h>

#include "sim/layers/memory.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::layer_activations_test {
namespace {

// Eight layers on one of four GPUs; s b = 2 x 1,024 tokens, h = 512, f = 2,048 without a gate.
PlanRequest request_of(const char* recompute, int offload = 0) {
  PlanRequest request = plan_request(1, 1, 2, 8, 1024, "megatron-core");
  request.recompute = read_recompute(JsonValue::parse("\"" + std::string{recompute} + "\"", "t"));
  request.offload_layers = offload;
  return request;
}
Scenario scenario_with(const PlanRequest& request) {
  return scenario_of(small_gpt(8, 512, 8, 1024), read_system("four-by-four", test_place), request,
                     4);
}
double activations(const Scenario& scenario) {
  return memory_of(scenario).stages.at(0).activations.si();
}

// Of fp8 the inputs of products are kept in one byte: 13 h of 10 h + 2 (h + 2 k d) + 4 f bytes are
// not among them (both norms' inputs, queries, keys, values and the output of attention, 2 h each,
// less what is not kept here), so that each format is counted term by term.
TEST(LayerActivations, FormatsTermByTerm) {
  PlanRequest request = request_of("none");
  const double t = 2 * 1024, h = 512, f = 2048, heads = 8;
  const auto bytes = [&](Dtype dtype, double element) {
    request.dtype = dtype;
    Scenario s = scenario_with(plan_request(1, 1, 2, 8, 1024, "megatron-core"));
    s.plan.dtype = dtype;
    s.software.keeps_quantised_inputs = element < 2.0;
    // Two norms' inputs, their outputs, q k v, the output (and its 8-bit form), both sides of the
    // activation, a log-sum-exp a head.
    const double own = 2 * 2 * h + 2 * element * h + 2 * 4 * h + (element < 2.0 ? element * h : 0) +
                       (2 + element) * f + 4 * heads;
    EXPECT_DOUBLE_EQ(layer_activations(s, Recompute::none).si(), t * own) << name(dtype);
  };
  bytes(Dtype::bf16, 2.0);
  bytes(Dtype::fp8, 1.0);
  bytes(Dtype::mxfp8, 1.0 + 1.0 / 32);
  bytes(Dtype::nvfp4, 0.5625);
}

// Inputs of the last norm and the head, 2 h bytes each, and logits of 2 bytes with a softmax of 4;
// each further prediction keeps its softmax. In chunks, a loss keeps none.
TEST(LayerActivations, EachPredictionKeepsItsSoftmax) {
  const double t = 2 * 1024, h = 512;
  const auto others = [&](int predictions, bool chunked) {
    Scenario s = scenario_with(request_of("none"));
    s.model.prediction_layers = predictions;
    s.plan.chunked_loss = chunked;
    return memory_of(s).stages.at(0).other.si();
  };
  const double vocab = static_cast<double>(scenario_with(request_of("none")).padded_vocab);
  const double without = others(0, false) - t * (4 * h + 6 * vocab);
  for (const int predictions : {1, 2, 3}) {
    EXPECT_DOUBLE_EQ(others(predictions, false),
                     without + t * (4 * h + (6 + 4 * predictions) * vocab));
    EXPECT_DOUBLE_EQ(others(predictions, true), others(0, true));
  }
}

// Queries as a view keep the keys and values of their copy alive, 2 k d of 2 bytes a token, but not
// where keys and values are fewer and so were never in one copy with them.
TEST(LayerActivations, PackedQueriesKeepKeysAndValuesTwice) {
  Scenario s = scenario_with(request_of("none"));
  const double once = layer_activations(s, Recompute::none).si();
  s.software.keeps_packed_qkv = true;
  EXPECT_DOUBLE_EQ(layer_activations(s, Recompute::none).si() - once, 2 * 1024 * 2 * 512 * 2.0);
  s.model.kv_heads = 4;
  const double grouped = layer_activations(s, Recompute::none).si();
  s.software.keeps_packed_qkv = false;
  EXPECT_DOUBLE_EQ(layer_activations(s, Recompute::none).si(), grouped);
}

TEST(LayerActivations, SomeLayersAreComputedAgain) {
  const double none = activations(scenario_with(request_of("none")));
  const double full = activations(scenario_with(request_of("full")));
  const Scenario one_layer = scenario_with(request_of("none"));
  const double whole = layer_activations(one_layer, Recompute::none).si();
  const double input = layer_activations(one_layer, Recompute::full).si();
  EXPECT_DOUBLE_EQ(none, 8 * whole);
  for (int n = 1; n <= 8; ++n) {
    const Scenario some = scenario_with(request_of(("full:" + std::to_string(n)).c_str()));
    // A layer is held whole in addition to the rest while it is recomputed.
    EXPECT_DOUBLE_EQ(activations(some), n * input + (8 - n) * whole + whole) << n;
    for (int layer = 0; layer < 8; ++layer) EXPECT_EQ(some.kind_of(layer).kept, layer >= n);
  }
  EXPECT_DOUBLE_EQ(activations(scenario_with(request_of("full:8"))), full);
  // More than there are: all.
  EXPECT_DOUBLE_EQ(activations(scenario_with(request_of("full:99"))), full);
}

// Of each virtual stage the first layers.
TEST(LayerActivations, SomeLayersOfEachVirtualStage) {
  PlanRequest request = request_of("full:1");
  request.pp = 2;
  request.vpp = 2;
  const Scenario some = scenario_with(request);
  for (int layer = 0; layer < 8; ++layer) EXPECT_EQ(some.kind_of(layer).kept, layer % 2 == 1);
}

TEST(LayerActivations, OffloadedLayersLeaveTheGpu) {
  const double whole = layer_activations(scenario_with(request_of("none")), Recompute::none).si();
  for (int n = 0; n < 8; ++n) {
    const Scenario s = scenario_with(request_of("none", n));
    EXPECT_DOUBLE_EQ(activations(s), (8 - n) * whole) << n;
    EXPECT_DOUBLE_EQ(activations_on_host(s, 0).si(), n * whole) << n;
    EXPECT_DOUBLE_EQ(host_copies(s, 0).si(), n * whole / s.system.gpu.host.si()) << n;
  }
}

TEST(LayerActivations, WhatCannotBeOffloaded) {
  const auto refusal = [](PlanRequest request) {
    return error_text([&] { scenario_with(request); });
  };
  EXPECT_NE(refusal(request_of("none", 8)).find("use offload_layers=7 or less"), std::string::npos);
  EXPECT_NE(refusal(request_of("full", 2)).find("recompute=full"), std::string::npos);
  PlanRequest staged = request_of("none", 2);
  staged.pp = 2;
  EXPECT_NE(refusal(staged).find("one pipeline stage only"), std::string::npos);
}

OffloadModules modules_of(const std::string& text) {
  return read_offload(JsonValue::parse("\"" + text + "\"", "t"));
}

// Of bf16 and 2 x 1,024 tokens, h = 512 channels: the layer's input and its norm's output have
// 2 h bytes a token, queries, keys and values 6 h, attention's output 2 h, and the MLP's input 2 h.
// With the output's own parts taken twice, a layer's part is on the GPU while the next is copied.
TEST(LayerActivations, OffloadedPartsLeaveTheGpu) {
  const double t = 2 * 1024, h = 512;
  const double all = activations(scenario_with(request_of("none")));
  const auto check = [&](const char* text, double bytes) {
    PlanRequest request = request_of("none");
    request.offload_modules = modules_of(text);
    const Scenario s = scenario_with(request);
    EXPECT_DOUBLE_EQ(offloaded_activations(s, LayerKind::dense).si(), t * bytes) << text;
    EXPECT_DOUBLE_EQ(activations_on_host(s, 0).si(), 8 * t * bytes) << text;
    EXPECT_DOUBLE_EQ(activations(s), all - (8 - 2) * t * bytes) << text;
    EXPECT_DOUBLE_EQ(memory_of(s).host.si(), 4 * 8 * t * bytes) << text;  // Four GPUs a node.
    EXPECT_EQ(offload_text(request.offload_modules), text);
  };
  check("none", 0);
  check("attn_norm", 2 * h);
  check("qkv_linear", 2 * h);
  check("core_attn", 6 * h);
  check("core_attn+attn_proj", 8 * h);
  check("mlp_norm", 2 * h);
  check("attn_norm+qkv_linear+core_attn+attn_proj+mlp_norm", 14 * h);
}

// Whatever is offloaded, in pipelines of any depth and with few layers in flight: a stage never
// holds more than without.
TEST(LayerActivations, OffloadingNeverTakesMemory) {
  for (const int pp : {1, 2, 4, 8})
    for (const int microbatches : {1, 2, 8})
      for (const char* modules : {"attn_norm", "core_attn", "core_attn+attn_proj+mlp_norm"}) {
        PlanRequest request = plan_request(1, pp, 2, 2 * microbatches, 1024, "megatron-core");
        const auto held = [&](const OffloadModules& of) {
          request.offload_modules = of;
          std::vector<double> stages;
          for (const StageMemory& stage :
               memory_of(scenario_of(small_gpt(8, 512, 8, 1024),
                                     read_system("four-by-four", test_place), request, pp))
                   .stages)
            stages.push_back(stage.activations.si());
          return stages;
        };
        const std::vector<double> all = held({}), some = held(modules_of(modules));
        for (std::size_t stage = 0; stage < all.size(); ++stage)
          EXPECT_LE(some[stage], all[stage] * (1 + 1e-12)) << modules << " pp " << pp;
      }
}

// A layer whose norms' outputs are computed again keeps none of them to offload.
TEST(LayerActivations, WhatIsComputedAgainIsNotOffloaded) {
  PlanRequest request = request_of("selective:layernorm");
  request.offload_modules = modules_of("qkv_linear");
  EXPECT_EQ(offloaded_activations(scenario_with(request), LayerKind::dense), Bytes{});
}

// Mixtral 8x7B: each of 2 experts a token has rows of h = 4,096 channels and a gated activation of
// f = 14,336. Even routing over one rank's experts: 2 rows a token.
TEST(LayerActivations, OffloadedPartsOfExperts) {
  PlanRequest request = plan_request(1, 1, 1, 8, 4096, "megatron-core");
  request.ep = 8;
  const double rows = 2.0 * 4096, h = 4096, f = 14336;
  const auto bytes = [&](const char* modules, const char* recompute) {
    request.offload_modules = modules_of(modules);
    request.recompute = read_recompute(JsonValue::parse("\"" + std::string{recompute} + "\"", "t"));
    const Scenario s = scenario_of(read_model("mixtral-8x7b", test_place),
                                   read_system("dgx-h100", test_place), request, 8);
    return offloaded_activations(s, LayerKind::experts).si();
  };
  EXPECT_DOUBLE_EQ(bytes("expert_fc1", "none"), rows * 2 * h);
  EXPECT_DOUBLE_EQ(bytes("moe_act", "none"), rows * 2 * 2 * f);
  EXPECT_DOUBLE_EQ(bytes("fused_group_mlp", "none"), rows * (2 * h + 6 * f));
  EXPECT_DOUBLE_EQ(bytes("fused_group_mlp", "selective:moe_act"), rows * (2 * h + 4 * f));
}

TEST(LayerActivations, PartsThatCannotBeOffloaded) {
  const auto refusal = [](const char* modules, PlanRequest request) {
    request.offload_modules = modules_of(modules);
    return error_text([&] { scenario_with(request); });
  };
  const auto with = [&](const char* recompute) { return request_of(recompute); };
  EXPECT_NE(refusal("attn_proj", with("none")).find("use core_attn+attn_proj"), std::string::npos);
  EXPECT_NE(refusal("core_attn", with("full")).find("keeps nothing of a layer"), std::string::npos);
  EXPECT_NE(refusal("moe_act", with("none")).find("no routed experts"), std::string::npos);
  EXPECT_NE(refusal("core_attn", request_of("none", 2)).find("not offloaded together"),
            std::string::npos);
  PlanRequest split = with("none");
  split.pp = 2;
  split.schedule = find_schedule("zb-h1");
  EXPECT_NE(refusal("core_attn", split).find("splits them"), std::string::npos);
  EXPECT_THROW(modules_of("softmax"), Error);
}

// A slower link to the host never makes a step shorter, and a fast one costs nothing.
TEST(Offloading, WaitsForWhatTheLinkCannotHide) {
  Scenario s = scenario_with(request_of("none", 4));
  const auto cost_with = [&](double bytes_per_second) {
    s.system.gpu.host = BytesPerSecond{bytes_per_second};
    StageCost cost;
    cost.buckets.resize(2);
    for (Bucket& bucket : cost.buckets)
      bucket.forward = bucket.backward = waiting(Seconds{1e-3}, "kernel");
    wait_for_host_copies(s, 0, cost);
    return cost;
  };
  const double bytes = activations_on_host(s, 0).si();
  const StageCost fast = cost_with(bytes / 1e-3);  // One millisecond concurrent with two.
  EXPECT_DOUBLE_EQ(fast.buckets[1].forward.time().si(), 1e-3);
  EXPECT_DOUBLE_EQ(fast.buckets[1].backward.time().si(), 1e-3);
  const StageCost slow = cost_with(bytes / 5e-3);  // Five concurrent with two: three are exposed.
  EXPECT_DOUBLE_EQ(slow.buckets[0].forward.time().si(), 1e-3);
  EXPECT_DOUBLE_EQ(slow.buckets[1].forward.time().si(), 4e-3);
  EXPECT_DOUBLE_EQ(slow.buckets[1].backward.time().si(), 4e-3);
  EXPECT_DOUBLE_EQ(slow.buckets[1].forward.decisive.total().si(), 4e-3);
}

}  // namespace
}  // namespace orrery::layer_activations_test
