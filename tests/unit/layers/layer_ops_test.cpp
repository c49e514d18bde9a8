#include "sim/layers/layer_ops.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/scenarios.hpp"

namespace orrery::layer_ops_test {
namespace {

// T = 2 x 64 = 128 tokens, h = 512, t = 2: this rank has 4 heads of 64, 1,024 MLP channels, and 640
// of 1,280 padded vocabulary rows (1,200 up to a multiple of 128 t).
constexpr double T = 128, h = 512, f = 1024, V = 640;

Scenario scenario_on(const std::string& software, bool sp = false,
                     Recompute recompute = Recompute::none) {
  PlanRequest request = plan_request(2, 1, 2, 2, 64, software);
  request.sp = sp;
  request.recompute = recompute;
  return scenario_of(small_gpt(2, 512, 8, 1200), read_system("four-by-four", test_place), request,
                     2);
}

const Op& named(const Ops& ops, std::string_view name) {
  const auto found =
      std::find_if(ops.begin(), ops.end(), [&](const Op& op) { return op.name == name; });
  if (found == ops.end()) throw std::runtime_error{"no op " + std::string{name}};
  return *found;
}

bool has(const Ops& ops, std::string_view name) {
  return std::any_of(ops.begin(), ops.end(), [&](const Op& op) { return op.name == name; });
}

std::string names(const Ops& ops) {
  std::string all;
  for (const Op& op : ops) all += (all.empty() ? "" : " ") + std::string{op.name};
  return all;
}

void expect_shape(const Op& op, std::int64_t m, std::int64_t n, std::int64_t k) {
  SCOPED_TRACE(op.name);
  EXPECT_EQ(op.m, m);
  EXPECT_EQ(op.n, n);
  EXPECT_EQ(op.k, k);
}

// Forward (m, n, k); the gradient of the input (m, k, n), of the weight (n, k, m).
TEST(LayerOps, GemmShapes) {
  const Ops forward = layer_forward(scenario_on("megatron-core"));
  const Ops backward = layer_backward(scenario_on("megatron-core"));
  struct Product {
    std::string name;
    std::int64_t n, k;
  };
  for (const Product& p : std::vector<Product>{
           {"qkv", 768, 512}, {"proj", 512, 256}, {"fc1", 1024, 512}, {"fc2", 512, 1024}}) {
    expect_shape(named(forward, p.name), 128, p.n, p.k);
    expect_shape(named(backward, p.name + "_dgrad"), 128, p.k, p.n);
    expect_shape(named(backward, p.name + "_wgrad"), p.n, p.k, 128);
  }
  expect_shape(named(head_forward(scenario_on("megatron-core")), "head"), 128, 640, 512);
}

TEST(LayerOps, OrderOfAnEagerLayer) {
  EXPECT_EQ(
      names(layer_forward(scenario_on("megatron-2021"))),
      "norm qkv transpose scores softmax attention_dropout values proj tp_reduce residual norm "
      "fc1 activation fc2 tp_reduce residual");
  EXPECT_EQ(names(layer_backward(scenario_on("megatron-2021"))),
            "residual_bwd fc2_dgrad fc2_wgrad accumulate activation_bwd fc1_dgrad tp_reduce_grad "
            "fc1_wgrad accumulate norm_bwd residual_bwd proj_dgrad proj_wgrad accumulate "
            "values_dgrad values_wgrad attention_dropout_bwd softmax_bwd scores_dgrad scores_wgrad "
            "transpose_bwd qkv_dgrad tp_reduce_grad qkv_wgrad accumulate norm_bwd");
}

// With 60 % pipelined into the GEMMs a collective stands before the GEMM that hides it.
TEST(LayerOps, OrderOfAFusedSequenceParallelLayer) {
  EXPECT_EQ(names(layer_forward(scenario_on("megatron-core", true))),
            "norm tp_gather qkv attention tp_reduce proj residual norm tp_gather fc1 activation "
            "tp_reduce fc2 residual");
  const Ops ops = layer_forward(scenario_on("megatron-core", true));
  EXPECT_EQ(named(ops, "tp_gather").hidden, 0.6);
  EXPECT_EQ(named(ops, "tp_reduce").collective, CollectiveKind::reduce_scatter);
}

// Bytes of the passes over memory, 2 an activation; docs/explanation/layers.md has the list.
TEST(LayerOps, BytesOfAnEagerLayer) {
  const Ops forward = layer_forward(scenario_on("megatron-2021"));
  const Ops backward = layer_backward(scenario_on("megatron-2021"));
  const double scores = 2 * 4 * 64 * 64;                        // micro-batch x heads x s^2
  EXPECT_EQ(named(forward, "norm").bytes.si(), 4 * T * h);      // read, write
  EXPECT_EQ(named(forward, "residual").bytes.si(), 7 * T * h);  // two read, one written, mask
  EXPECT_EQ(named(forward, "softmax").bytes.si(), 4 * scores);
  EXPECT_EQ(named(forward, "attention_dropout").bytes.si(), 5 * scores);
  EXPECT_EQ(named(forward, "activation").bytes.si(), 2 * T * (f + f));
  EXPECT_EQ(named(backward, "norm_bwd").bytes.si(), 8 * T * h);
  EXPECT_EQ(named(backward, "residual_bwd").bytes.si(), 13 * T * h);
  EXPECT_EQ(named(backward, "activation_bwd").bytes.si(), 2 * T * 3 * f);
  EXPECT_EQ(named(backward, "accumulate").bytes.si(), 12 * h * f);  // 12 bytes a weight of fc2
  EXPECT_EQ(named(backward, "softmax_bwd").bytes.si(), 6 * scores);
  // Scores: both inputs of 64 x 64 read and 64 x 64 written, 2 bytes each, for 2 x 4 heads.
  EXPECT_EQ(named(forward, "scores").bytes.si(), 2.0 * 8 * 3 * 64 * 64);
}

TEST(LayerOps, SequenceParallelismSplitsNormsAndResiduals) {
  const Ops forward = layer_forward(scenario_on("megatron-2021", true));
  EXPECT_EQ(named(forward, "norm").bytes.si(), 4 * T * h / 2);
  EXPECT_EQ(named(forward, "residual").bytes.si(), 7 * T * h / 2);
  EXPECT_EQ(named(forward, "activation").bytes.si(), 2 * T * (f + f));
}

TEST(LayerOps, RecomputationRepeatsWhatThePlanSays) {
  const auto recomputed = [](const std::string& software, Recompute recompute) {
    return names(layer_recompute(scenario_on(software, false, recompute)));
  };
  EXPECT_EQ(recomputed("megatron-2021", Recompute::none), "");
  EXPECT_EQ(recomputed("megatron-2021", Recompute::selective),
            "scores softmax attention_dropout values");
  EXPECT_EQ(recomputed("megatron-core", Recompute::selective), "attention");
  EXPECT_EQ(recomputed("megatron-2021", Recompute::full),
            names(layer_forward(scenario_on("megatron-2021"))));
  EXPECT_EQ(recomputed("torchtitan", Recompute::selective),
            "norm keys proj tp_reduce residual norm activation");
  Scenario early = scenario_on("megatron-2021", false, Recompute::full);
  early.software.early_recompute_stop = true;
  EXPECT_EQ(
      names(layer_recompute(early)),
      "norm qkv transpose scores softmax attention_dropout values proj tp_reduce residual norm "
      "fc1 activation");
}

TEST(LayerOps, EmbeddingAndHead) {
  const Scenario scenario = scenario_on("megatron-2021");
  const Ops head = head_forward(scenario);
  EXPECT_EQ(named(head, "cross_entropy").bytes.si(), 38 * T * V);
  EXPECT_EQ(named(head, "logit_sum").bytes.si(), 4 * T);
  EXPECT_EQ(named(head_backward(scenario), "cross_entropy_bwd").bytes.si(), 14 * T * V);
  EXPECT_EQ(named(embedding_forward(scenario), "embedding").bytes.si(), 4 * T * h);
  EXPECT_EQ(named(embedding_backward(scenario), "embedding_bwd").bytes.si(), 10 * T * h);
  Scenario learned = scenario;
  learned.model.learned_positions = 64;
  EXPECT_EQ(named(embedding_forward(learned), "embedding").bytes.si(), 10 * T * h);
  EXPECT_TRUE(has(embedding_forward(scenario), "tp_reduce"));
}

// Fewer key/value heads than ranks: each rank keeps one.
TEST(LayerOps, KeyValueHeadsAreCopiedWhereRanksOutnumberThem) {
  Scenario scenario = scenario_on("megatron-core");
  scenario.model.kv_heads = 1;
  expect_shape(named(layer_forward(scenario), "qkv"), 128, (4 + 2) * 64, 512);
}

TEST(LayerOps, WhatAModelHasIsCharged) {
  Scenario scenario = scenario_on("megatron-core");
  EXPECT_FALSE(has(layer_forward(scenario), "rope"));
  scenario.model.rotary = scenario.model.qk_norm = scenario.model.gated = true;
  const Ops forward = layer_forward(scenario);
  EXPECT_EQ(named(forward, "rope").bytes.si(), 4 * T * (4 + 4) * 64);
  EXPECT_EQ(named(forward, "qk_norm").bytes.si(), 4 * T * (4 + 4) * 64);
  expect_shape(named(forward, "fc1"), 128, 2048, 512);
  EXPECT_EQ(named(forward, "activation").bytes.si(), 2 * T * (2 * f + f));
}

}  // namespace
}  // namespace orrery::layer_ops_test
