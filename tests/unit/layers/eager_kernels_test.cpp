#include <gtest/gtest.h>

#include "sim/layers/layer_activations.hpp"
#include "sim/layers/op_work.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::eager_kernels_test {
namespace {

Scenario llama_on(EagerKernels eager) {
  Model llama = small_gpt(2, 512, 8, 1200);
  llama.norm = NormKind::rms;
  llama.gated = true;
  Scenario scenario = scenario_of(llama, read_system("four-by-four", test_place),
                                  plan_request(1, 1, 1, 1, 64, "megatron-core"), 1);
  scenario.software.eager_kernels = eager;
  return scenario;
}

struct Kernels {
  Op forward, backward;
};

void expect_traffic(const Kernels& kernels, double forward, int launches, double backward,
                    int backward_launches) {
  EXPECT_DOUBLE_EQ(kernels.forward.bytes.si(), forward);
  EXPECT_EQ(kernels.forward.kernels, launches);
  EXPECT_DOUBLE_EQ(kernels.backward.bytes.si(), backward);
  EXPECT_EQ(kernels.backward.kernels, backward_launches);
}

Kernels norm_of(const Scenario& scenario) {
  const LayerSizes s{scenario};
  return {norm_op(s, "norm", 1000, false), norm_op(s, "norm_bwd", 1000, true)};
}
Kernels positions_of(const Scenario& scenario) {
  const LayerSizes s{scenario};
  return {rotary_op(s, "rope", 1000, false), rotary_op(s, "rope_bwd", 1000, true)};
}
Kernels activation_of(const Scenario& scenario) {
  const LayerSizes s{scenario};
  return {activation_op(s, "activation", 1000, false),
          activation_op(s, "activation_bwd", 1000, true)};
}

TEST(EagerKernels, OneKernelEachUnlessTheSoftwareSaysOtherwise) {
  const Scenario fused = llama_on({});
  expect_traffic(norm_of(fused), 4000, 1, 8000, 1);
  expect_traffic(positions_of(fused), 4000, 1, 4000, 1);
  // Two halves in, one out: 2 x 3 bytes; backward 2 x 5.
  expect_traffic(activation_of(fused), 6000, 1, 10000, 1);
}

TEST(EagerKernels, EachPartByItself) {
  const Scenario norms = llama_on({.rms_norm = true});
  expect_traffic(norm_of(norms), 36000, 8, 84000, 14);
  expect_traffic(positions_of(norms), 4000, 1, 4000, 1);
  const Scenario positions = llama_on({.rotary = true});
  expect_traffic(positions_of(positions), 24000, 6, 20000, 5);
  expect_traffic(norm_of(positions), 4000, 1, 8000, 1);
  const Scenario activations = llama_on({.gated_activation = true});
  expect_traffic(activation_of(activations), 10000, 2, 26000, 4);
}

// Broadcast: inverse roots and the weight, cosines and sines; strided: halves of a head or of one
// product. The MLP's inputs as two products are not.
TEST(EagerKernels, SomeWorkOutTheAddressesOfTheirOperands) {
  const auto expect_indexed = [](const Kernels& kernels, double forward, double forward_bytes,
                                 double backward, double backward_bytes) {
    EXPECT_DOUBLE_EQ(kernels.forward.indexed.elements, forward);
    EXPECT_DOUBLE_EQ(kernels.forward.indexed.bytes.si(), forward_bytes);
    EXPECT_DOUBLE_EQ(kernels.backward.indexed.elements, backward);
    EXPECT_DOUBLE_EQ(kernels.backward.indexed.bytes.si(), backward_bytes);
  };
  const Scenario fused = llama_on({});
  for (const Kernels& kernels : {norm_of(fused), positions_of(fused), activation_of(fused)})
    expect_indexed(kernels, 0, 0, 0, 0);
  Scenario eager = llama_on({true, true, true});
  expect_indexed(norm_of(eager), 2000, 12000, 3000, 20000);
  expect_indexed(positions_of(eager), 2500, 10000, 2500, 10000);
  expect_indexed(activation_of(eager), 2000, 10000, 2000, 12000);
  eager.software.fused_projections = false;
  expect_indexed(activation_of(eager), 0, 0, 0, 0);
}

// YaRN's positions, which the fused kernel does not know.
TEST(EagerKernels, PositionsThatScale) {
  Scenario scaled = llama_on({.scaled_rotary = true});
  expect_traffic(positions_of(scaled), 4000, 1, 4000, 1);
  scaled.model.scaled_rotary = true;
  expect_traffic(positions_of(scaled), 24000, 6, 20000, 5);
}

TEST(EagerKernels, LayerNormsAndPlainActivationsWereAlwaysFused) {
  Scenario gpt = llama_on({true, true, true});
  gpt.model.norm = NormKind::layer;
  gpt.model.gated = false;
  expect_traffic(norm_of(gpt), 4000, 1, 8000, 1);
  expect_traffic(activation_of(gpt), 4000, 1, 6000, 1);
}

// A layer's two norms keep x in 32 bits instead of 16 and the normalised x: 2 x (2 + 2) bytes of
// each hidden channel; its activation silu's output, 2 bytes of each MLP channel.
TEST(EagerKernels, MemoryOfALayer) {
  const Scenario fused = llama_on({});
  const auto tokens = static_cast<double>(fused.tokens_per_microbatch());
  const double more_of_norms = 8.0 * tokens * static_cast<double>(fused.model.hidden);
  const double more_of_activation = 2.0 * tokens * static_cast<double>(fused.model.ffn);
  const double plain = layer_activations(fused, Recompute::none).si();
  EXPECT_DOUBLE_EQ(layer_activations(llama_on({.rms_norm = true}), Recompute::none).si(),
                   plain + more_of_norms);
  EXPECT_DOUBLE_EQ(layer_activations(llama_on({.gated_activation = true}), Recompute::none).si(),
                   plain + more_of_activation);
  EXPECT_DOUBLE_EQ(layer_activations(llama_on({.rotary = true}), Recompute::none).si(), plain);
}

}  // namespace
}  // namespace orrery::eager_kernels_test
