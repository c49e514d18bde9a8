#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "sim/layers/layer_activations.hpp"
#include "sim/layers/layer_ops.hpp"
#include "sim/layers/memory.hpp"
#include "tests/support/error_text.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::parallel_block_test {
namespace {

// T = 2 x 64 tokens of 512 channels; 8 heads of 64 and an MLP of 2048 over t ranks.
constexpr double T = 128, h = 512;

enum class Blocks { serial, two_norms, one_norm };

Scenario scenario_of_blocks(Blocks blocks, int t, bool sp,
                            const std::string& software = "megatron-core") {
  Model model = small_gpt(2, 512, 8, 1200);
  model.parallel_residual = blocks != Blocks::serial;
  model.norms_per_layer = blocks == Blocks::one_norm ? 1 : 2;
  PlanRequest request = plan_request(t, 1, 2, 2, 64, software);
  request.sp = sp;
  return scenario_of(model, read_system("four-by-four", test_place), request, t);
}

double sum_of(const Ops& ops, const auto& figure) {
  double sum = 0.0;
  for (const Op& op : ops) sum += figure(op);
  return sum;
}
double flop(const Ops& ops) {
  return sum_of(ops, [](const Op& op) { return op.flop().si(); });
}
double count(const Ops& ops, std::string_view name) {
  return sum_of(ops, [&](const Op& op) { return op.name == name ? 1.0 : 0.0; });
}
double bytes(const Ops& ops, std::string_view name) {
  return sum_of(ops, [&](const Op& op) { return op.name == name ? op.bytes.si() : 0.0; });
}
// The count of each kind of collective, all with the whole tensor of 2 T h bytes.
std::map<CollectiveKind, int> collectives(const Ops& ops) {
  std::map<CollectiveKind, int> times;
  for (const Op& op : ops)
    if (op.kind == Op::Kind::collective) {
      EXPECT_EQ(op.bytes.si(), 2 * T * h);
      ++times[op.collective];
    }
  return times;
}

// The matrices are the same ones, whatever stands between them.
TEST(ParallelBlock, MultipliesWhatTheSerialOneDoes) {
  for (int t : {1, 2, 4})
    for (bool sp : {false, true})
      for (Blocks blocks : {Blocks::one_norm, Blocks::two_norms}) {
        const Scenario parallel = scenario_of_blocks(blocks, t, sp);
        const Scenario serial = scenario_of_blocks(Blocks::serial, t, sp);
        EXPECT_DOUBLE_EQ(flop(layer_forward(parallel)), flop(layer_forward(serial)));
        EXPECT_DOUBLE_EQ(flop(layer_backward(parallel)), flop(layer_backward(serial)));
      }
}

// Serial: a reduction each block and direction (Shoeybi et al., figure 3). Parallel: forward one,
// of the sum; backward one of the gradient of each tensor that was normalised: one or two.
TEST(ParallelBlock, ReducesOnce) {
  using Times = std::map<CollectiveKind, int>;
  const auto forward = [](Blocks blocks) {
    return collectives(layer_forward(scenario_of_blocks(blocks, 4, false)));
  };
  const auto backward = [](Blocks blocks) {
    return collectives(layer_backward(scenario_of_blocks(blocks, 4, false)));
  };
  EXPECT_EQ(forward(Blocks::serial), (Times{{CollectiveKind::all_reduce, 2}}));
  EXPECT_EQ(forward(Blocks::two_norms), (Times{{CollectiveKind::all_reduce, 1}}));
  EXPECT_EQ(forward(Blocks::one_norm), (Times{{CollectiveKind::all_reduce, 1}}));
  EXPECT_EQ(backward(Blocks::serial), (Times{{CollectiveKind::all_reduce, 2}}));
  EXPECT_EQ(backward(Blocks::two_norms), (Times{{CollectiveKind::all_reduce, 2}}));
  EXPECT_EQ(backward(Blocks::one_norm), (Times{{CollectiveKind::all_reduce, 1}}));
  EXPECT_TRUE(collectives(layer_forward(scenario_of_blocks(Blocks::one_norm, 1, false))).empty());
}

// With sequence parallelism what was normalised is gathered, and backward once more; the gradient
// of the sum is gathered once for both blocks.
TEST(ParallelBlock, GathersWhatBothReadOnce) {
  const auto times = [](Blocks blocks, bool backwards) {
    const Scenario scenario = scenario_of_blocks(blocks, 4, true);
    const auto all = collectives(backwards ? layer_backward(scenario) : layer_forward(scenario));
    return std::pair{all.at(CollectiveKind::all_gather), all.at(CollectiveKind::reduce_scatter)};
  };
  EXPECT_EQ(times(Blocks::serial, false), (std::pair{2, 2}));
  EXPECT_EQ(times(Blocks::two_norms, false), (std::pair{2, 1}));
  EXPECT_EQ(times(Blocks::one_norm, false), (std::pair{1, 1}));
  EXPECT_EQ(times(Blocks::serial, true), (std::pair{4, 2}));
  EXPECT_EQ(times(Blocks::two_norms, true), (std::pair{3, 2}));
  EXPECT_EQ(times(Blocks::one_norm, true), (std::pair{2, 1}));
}

TEST(ParallelBlock, PassesOverMemory) {
  for (Blocks blocks : {Blocks::one_norm, Blocks::two_norms}) {
    const Scenario scenario = scenario_of_blocks(blocks, 4, true);
    const double norms = blocks == Blocks::one_norm ? 1 : 2;
    const Ops forward = layer_forward(scenario), backward = layer_backward(scenario);
    EXPECT_EQ(bytes(forward, "norm"), norms * 4 * T * h / 4);
    EXPECT_EQ(bytes(backward, "norm_bwd"), norms * 8 * T * h / 4);
    EXPECT_EQ(bytes(forward, "residual"), 6 * T * h / 4);
    EXPECT_EQ(bytes(backward, "residual_bwd"), 6 * T * h / 4);
    EXPECT_EQ(bytes(forward, "branch_sum"), 6 * T * h);  // Before it is reduced: all tokens.
    // Two products bring gradients to one input, or two norms to one tensor.
    EXPECT_EQ(bytes(backward, "grad_sum"), blocks == Blocks::one_norm ? 2 * 3 * T * h : 0.0);
    EXPECT_EQ(bytes(backward, "input_grad_sum"), blocks == Blocks::one_norm ? 0.0 : 6 * T * h / 4);
  }
}

// Fused, a serial GPT layer keeps T h (8 + 24/t) bytes (inputs and outputs of both norms; queries,
// keys, values and their result; both sides of the activation) and a log-sum-exp a head. In
// parallel one input less, and one output less with one norm.
TEST(ParallelBlock, KeepsOneInput) {
  for (int t : {1, 2, 4}) {
    const auto kept = [&](Blocks blocks) {
      return layer_activations(scenario_of_blocks(blocks, t, t > 1), Recompute::none).si();
    };
    const double tensor = 2 * T * h / t;
    EXPECT_DOUBLE_EQ(kept(Blocks::serial) - kept(Blocks::two_norms), tensor);
    EXPECT_DOUBLE_EQ(kept(Blocks::two_norms) - kept(Blocks::one_norm), tensor);
  }
}

TEST(ParallelBlock, WhatIsComputedAgain) {
  Scenario scenario = scenario_of_blocks(Blocks::one_norm, 4, true);
  scenario.plan.recompute = Recompute::full;
  EXPECT_EQ(flop(layer_recompute(scenario)), flop(layer_forward(scenario)));
  scenario.plan.recompute = std::set<RecomputeModule>{RecomputeModule::layernorm};
  EXPECT_EQ(count(layer_recompute(scenario), "norm"), 1.0);
  scenario.plan.recompute = std::set<RecomputeModule>{RecomputeModule::mlp};
  const Ops mlp = layer_recompute(scenario);
  EXPECT_EQ(count(mlp, "fc1") + count(mlp, "fc2"), 2.0);
  EXPECT_EQ(count(mlp, "tp_reduce"), 0.0);
}

TEST(ParallelBlock, IsRefusedWithExperts) {
  Model model = small_mixture(2, 512, 8, 1200, 4, 2);
  model.parallel_residual = true;
  const auto make = [&] {
    scenario_of(model, read_system("four-by-four", test_place),
                plan_request(1, 1, 1, 2, 64, "megatron-core"), 2);
  };
  EXPECT_NE(error_text(make).find("parallel blocks are modelled for layers with neither experts"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery::parallel_block_test
