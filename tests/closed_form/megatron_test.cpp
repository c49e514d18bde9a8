// Statements of Megatron's papers about a GPT layer, from the lists of ops.
#include <gtest/gtest.h>

#include "sim/layers/layer_ops.hpp"
#include "sim/layers/step_cost.hpp"
#include "tests/closed_form/hand_made.hpp"

namespace orrery::megatron_test {
namespace {

constexpr double b = 3, s = 64, h = 512, layers = 2, vocab = 1024;

Scenario gpt_layer(int tp, bool sp, bool fused, const std::string& software = "megatron-2021") {
  PlanRequest request = plan_request(tp, 1, 3, 3, 64, software);
  request.sp = sp;
  request.fused_attention = fused;
  return scenario_of(small_gpt(2, 512, 8, 1024), read_system("four-by-four", test_place), request,
                     tp);
}

double flop(const Ops& ops) {
  double sum = 0.0;
  for (const Op& op : ops) sum += op.flop().si();
  return sum;
}

int count(const Ops& ops, Op::Kind kind) {
  return static_cast<int>(
      std::count_if(ops.begin(), ops.end(), [&](const Op& op) { return op.kind == kind; }));
}

// Bytes on the wire of all collectives of `ops` but `except`, in tensors of T h activations: an
// all-reduce of n ranks sends 2 (n-1)/n, a reduce-scatter or an all-gather (n-1)/n.
double wire_bytes(const Ops& ops, int n, std::string_view except = "") {
  double sum = 0.0;
  for (const Op& op : ops)
    if (op.kind == Op::Kind::collective && op.name != except)
      sum +=
          (op.collective == CollectiveKind::all_reduce ? 2.0 : 1.0) * (n - 1) / n * op.bytes.si();
  return sum;
}

// Narayanan et al. (arXiv 2104.04473), appendix: a layer's forward pass has 24 b s h^2 flop in
// GEMMs and 4 b s^2 h in scores and values; backward twice that; a rank of t does a t-th.
TEST(GptLayer, FlopOfNarayanan) {
  for (int t : {1, 2, 4}) {
    SCOPED_TRACE(t);
    const Scenario scenario = gpt_layer(t, false, false);
    const double forward = (24 * b * s * h * h + 4 * b * s * s * h) / t;
    EXPECT_DOUBLE_EQ(flop(layer_forward(scenario)), forward);
    EXPECT_DOUBLE_EQ(flop(layer_backward(scenario)), 2 * forward);
  }
}

// A fused kernel skips the masked half of the scores, and computes them again backward: five
// matrix products instead of two (Dao et al., arXiv 2205.14135).
TEST(GptLayer, FusedAttentionComputesTheCausalHalf) {
  const Scenario scenario = gpt_layer(1, false, true);
  EXPECT_DOUBLE_EQ(flop(layer_forward(scenario)), 24 * b * s * h * h + 2 * b * s * s * h);
  EXPECT_DOUBLE_EQ(flop(layer_backward(scenario)), 48 * b * s * h * h + 5 * b * s * s * h);
}

// Shoeybi et al. (arXiv 1909.08053): a layer's four matrices, each parallel by itself, need a
// collective each forward (column: gather the output, row: reduce it) and one backward, eight in
// all. Pairs of a column- and a row-parallel one need half of that: f and g of figure 3.
TEST(GptLayer, PairingHalvesTheCollectives) {
  for (const std::string software : {"megatron-2021", "megatron-2022", "megatron-core"}) {
    const Scenario scenario = gpt_layer(2, false, true, software);
    const Ops forward = layer_forward(scenario);
    const int matrices = count(forward, Op::Kind::gemm);
    EXPECT_EQ(matrices, 4);
    EXPECT_EQ(count(forward, Op::Kind::collective), matrices / 2);
    EXPECT_EQ(count(layer_backward(scenario), Op::Kind::collective), matrices / 2);
    for (const Op& op : forward)
      if (op.kind == Op::Kind::collective) {
        EXPECT_EQ(op.collective, CollectiveKind::all_reduce);
        EXPECT_EQ(op.bytes.si(), 2 * b * s * h);
      }
  }
  EXPECT_EQ(count(layer_forward(gpt_layer(1, false, true)), Op::Kind::collective), 0);
}

// Korthikanti et al. (arXiv 2205.05198), section 4.2.2: reduce-scatter and all-gather instead of an
// all-reduce send the same bytes. Backward each column-parallel layer gathers its input again, of
// which only a share was kept: two all-gathers more, hidden behind GEMMs.
TEST(GptLayer, SequenceParallelismSendsTheSameBytes) {
  for (int t : {2, 4}) {
    const Scenario plain = gpt_layer(t, false, true);
    const Scenario split = gpt_layer(t, true, true);
    EXPECT_DOUBLE_EQ(wire_bytes(layer_forward(split), t), wire_bytes(layer_forward(plain), t));
    EXPECT_DOUBLE_EQ(wire_bytes(layer_backward(split), t, "tp_gather_input"),
                     wire_bytes(layer_backward(plain), t));
    EXPECT_DOUBLE_EQ(wire_bytes(layer_backward(split), t) -
                         wire_bytes(layer_backward(split), t, "tp_gather_input"),
                     2.0 * (t - 1) / t * 2 * b * s * h);
  }
}

// Narayanan et al., section 3.2: between stages 2 b s h bytes, each rank a t-th of them
// (scatter-gather, section 4.1).
TEST(GptLayer, StagesExchangeOneTensor) {
  PlanRequest request = plan_request(4, 2, 3, 3, 64, "megatron-2021");
  const System system = read_system("four-by-four", test_place);
  const Scenario scenario = scenario_of(small_gpt(2, 512, 8, 1024), system, request, 8);
  const Placement placement{scenario.plan, system};
  const StepCost cost = price_step(scenario, nullptr, CollectiveTime{system}, placement.shapes());
  EXPECT_EQ(cost.transfer_bytes.si(), 2 * b * s * h / 4);
}

// The same paper's equation (3) counts 96 B s l h^2 (1 + s/6h + V/16lh), with activations computed
// again: 4 forward units. Without, 3 of the 4:
//     72 B s l h^2 (1 + s/6h)  +  6 B s h V          the head is not computed again
//   = 72 B s l h^2 (1 + s/6h + V/12lh)
// Causal attention counts half of the scores: s/12h.
TEST(ModelFlop, IsNarayanansWithoutRecomputation) {
  const Model model = small_gpt(2, 512, 8, 1024);
  const double batch = 7;
  const double base = 72 * batch * s * layers * h * h;
  EXPECT_DOUBLE_EQ(model_flop(model, 7, 64, false).si(),
                   base * (1 + s / (6 * h) + vocab / (12 * layers * h)));
  EXPECT_DOUBLE_EQ(model_flop(model, 7, 64, true).si(),
                   base * (1 + s / (12 * h) + vocab / (12 * layers * h)));
  // Their own sum from its parts: forward once more for the layers, once more for none of the head.
  const double recomputed = 24 * batch * s * layers * h * h * (1 + s / (6 * h));
  EXPECT_NEAR(model_flop(model, 7, 64, false).si() + recomputed,
              96 * batch * s * layers * h * h * (1 + s / (6 * h) + vocab / (16 * layers * h)),
              1e-6 * base);
}

// Local layers attend to `window` keys at most; gating adds a third matrix; grouped heads shrink
// keys and values.
TEST(ModelFlop, CountsWhatAModelHas) {
  Model model = small_gpt(1, 512, 8, 1024);
  model.gated = true;
  model.kv_heads = 2;
  const double attention = 2 * h * h + 2 * h * h / 4;
  const double expected = 3 * (2 * s * (attention + 3 * h * 4 * h + h * vocab) + 4 * s * s * h);
  EXPECT_DOUBLE_EQ(model_flop(model, 1, 64, false).si(), expected);
  model.window = 16;
  model.layer_is_local = {true};
  EXPECT_DOUBLE_EQ(model_flop(model, 1, 64, false).si(), expected - 3 * 4 * s * (s - 16) * h);
}

}  // namespace
}  // namespace orrery::megatron_test
