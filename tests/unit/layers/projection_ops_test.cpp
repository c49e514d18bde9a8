#include <gtest/gtest.h>

#include <algorithm>

#include "sim/layers/layer_activations.hpp"
#include "sim/layers/layer_ops.hpp"
#include "sim/layers/memory.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::projection_ops_test {
namespace {

// T = 2 x 64 = 128 tokens, h = 512. On each of t ranks: 8/t heads of 64, 2,048/t MLP channels,
// gated.
constexpr double T = 128, h = 512;

Scenario scenario_on(const std::string& software, int tp) {
  PlanRequest request = plan_request(tp, 1, 2, 2, 64, software);
  Scenario scenario =
      scenario_of(small_gpt(2, 512, 8, 1200), read_system("four-by-four", test_place), request, tp);
  scenario.model.gated = true;
  return scenario;
}

Scenario in_fp8(Scenario scenario) {
  scenario.plan.dtype = Dtype::fp8;
  return scenario;
}

template <class Value>
double sum_of(const Ops& ops, std::string_view name, const Value& value) {
  double sum = 0.0;
  for (const Op& op : ops)
    if (op.name == name) sum += value(op);
  return sum;
}

double bytes_of(const Ops& ops, std::string_view name) {
  return sum_of(ops, name, [](const Op& op) { return op.bytes.si(); });
}

double count_of(const Ops& ops, std::string_view name) {
  return sum_of(ops, name, [](const Op&) { return 1.0; });
}

double flop_of(const Ops& ops) {
  double sum = 0.0;
  for (const Op& op : ops) sum += op.flop().si();
  return sum;
}

TEST(ProjectionOps, ProductsSideBySideMultiplyAsMuchAsOne) {
  for (int tp : {1, 2, 4}) {
    Scenario fused = scenario_on("torchtitan", tp);
    fused.software.fused_projections = true;
    const Scenario apart = scenario_on("torchtitan", tp);
    EXPECT_DOUBLE_EQ(flop_of(layer_forward(fused)), flop_of(layer_forward(apart)));
    EXPECT_DOUBLE_EQ(flop_of(layer_backward(fused)), flop_of(layer_backward(apart)));
    EXPECT_EQ(count_of(layer_forward(apart), "qkv"), 3.0);
    EXPECT_EQ(count_of(layer_forward(apart), "fc1"), 2.0);
    EXPECT_EQ(count_of(layer_backward(apart), "qkv_dgrad"), 3.0);
    EXPECT_EQ(count_of(layer_backward(apart), "fc1_wgrad"), 2.0);
    EXPECT_FALSE(count_of(layer_backward(fused), "grad_sum"));
  }
}

// Of three and of two gradients of 2 T h bytes: before a collective all are read and the sum is
// written; else the norm's backward pass reads two and one more than of a fused product.
TEST(ProjectionOps, GradientsOfOneInputAreSummed) {
  EXPECT_EQ(bytes_of(layer_backward(scenario_on("torchtitan", 2)), "grad_sum"),
            2.0 * T * h * (4.0 + 3.0));
  EXPECT_EQ(bytes_of(layer_backward(scenario_on("torchtitan", 1)), "grad_sum"),
            2.0 * T * h * (2.0 + 1.0));
}

// What was gathered forward is kept: two norms' outputs are whole, 4 T h instead of 4 T h / t.
TEST(ProjectionOps, InputsAreGatheredOnceWhereTheyAreKept) {
  const Scenario once = scenario_on("torchtitan", 2);
  Scenario again = once;
  again.software.gathers_inputs_again = true;
  EXPECT_EQ(count_of(layer_backward(once), "tp_gather_input"), 0.0);
  EXPECT_EQ(count_of(layer_backward(again), "tp_gather_input"), 2.0);
  EXPECT_EQ(count_of(layer_forward(once), "tp_gather"), 2.0);
  const auto kept = [](const Scenario& s) {
    return layer_activations(s, Recompute::none, LayerKind::dense, 0.0).si();
  };
  EXPECT_DOUBLE_EQ(kept(once) - kept(again), 4.0 * T * h * (1.0 - 1.0 / 2.0));
}

// A scale for each row. Inputs of qkv and fc1 are quantised whole, after they were gathered, those
// of proj and fc2 a rank's share; gradients in both directions, inputs in the other one when their
// weight's gradient wants it.
TEST(ProjectionOps, RowsAreQuantisedWhereTheyArrive) {
  const Scenario s = in_fp8(scenario_on("torchtitan-rowwise", 2));
  const double inputs = T * (h + h / 2 + h + 1024);
  const double gradients = T * (3 * 256 + h + 2 * 1024 + h);
  const double columns = s.software.fp8_scaling.columns_bytes;
  const Ops forward = layer_forward(s);
  EXPECT_DOUBLE_EQ(bytes_of(forward, "quantise"), s.software.quantise_bytes * inputs);
  EXPECT_EQ(count_of(forward, "quantise_columns"), 0.0);
  const Ops backward = layer_backward(s);
  EXPECT_DOUBLE_EQ(bytes_of(backward, "quantise"), s.software.quantise_bytes * gradients);
  EXPECT_DOUBLE_EQ(bytes_of(backward, "quantise_columns"), columns * (gradients + inputs));
  for (const auto& [ops, name] :
       {std::pair{&forward, "tp_gather"}, std::pair{&backward, "tp_gather_grad"}})
    EXPECT_EQ(bytes_of(*ops, name), 2.0 * 2.0 * T * h) << name;

  // Between a gather and its products all is quantised: nothing of it can be pipelined.
  Scenario pipelined = s;
  pipelined.plan.tp_hidden = 0.65;
  for (const Op& op : layer_forward(pipelined))
    EXPECT_EQ(op.hidden, op.name == "tp_reduce" ? 0.65 : 0.0) << op.name;
}

// One scale for all: a rank's share is quantised and gathered in 8 bits.
TEST(ProjectionOps, TensorsAreQuantisedBeforeTheyAreSent) {
  const Scenario s = in_fp8(scenario_on("torchtitan", 2));
  const double inputs = T * (h / 2 + h / 2 + h / 2 + 1024);
  EXPECT_DOUBLE_EQ(bytes_of(layer_forward(s), "quantise"), s.software.quantise_bytes * inputs);
  EXPECT_EQ(count_of(layer_backward(s), "quantise_columns"), 0.0);
  EXPECT_EQ(bytes_of(layer_forward(s), "tp_gather"), 2.0 * T * h);
  EXPECT_EQ(bytes_of(layer_backward(s), "tp_gather_grad"), 2.0 * T * h);
}

TEST(ProjectionOps, WeightsAreQuantisedInEveryPassThatSaysSo) {
  for (const std::string software : {"torchtitan", "torchtitan-rowwise"})
    for (int tp : {1, 2}) {
      const Scenario s = in_fp8(scenario_on(software, tp));
      const double weights = h * (3 * 512 + 512 + 2 * 2048 + 2048) / tp;
      const Fp8Scaling& scaling = s.software.fp8_scaling;
      EXPECT_DOUBLE_EQ(bytes_of(layer_forward(s), "quantise_weight"),
                       scaling.forward_weight_bytes * weights);
      EXPECT_DOUBLE_EQ(bytes_of(layer_backward(s), "quantise_weight"),
                       scaling.backward_weight_bytes * weights);
      for (const Op& op : layer_forward(s))
        EXPECT_EQ(op.efficiency, op.kind == Op::Kind::gemm ? scaling.gemm_efficiency : 1.0)
            << op.name;
      for (const Op& op : head_forward(s)) EXPECT_NE(op.name, "quantise_weight");
      for (const Op& op : layer_forward(scenario_on(software, tp))) {
        EXPECT_FALSE(op.name.starts_with("quantise")) << op.name;
        EXPECT_EQ(op.efficiency, 1.0) << op.name;
      }
    }
}

}  // namespace
}  // namespace orrery::projection_ops_test
