#include "sim/training/layers_of_kind.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "sim/layers/memory.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "tests/unit/training/cases.hpp"

namespace orrery::layers_of_kind_test {
namespace {

// Qwen3-Next: of four layers in turn three have gated delta nets and the fourth attention.
Scenario qwen3_next(int vpp) {
  PlanRequest request = plan_request(2, 4, 1, 64, 4096, "megatron-core");
  request.ep = 8;
  request.vpp = vpp;
  return scenario_of(read_model("qwen3-next-80b-a3b", test_place),
                     read_system("dgx-h200", test_place), request, 64);
}

TEST(LayersOfKind, SayWhichTheyAre) {
  for (const int vpp : {1, 3}) {
    const std::vector<LayersOfKind> kinds = estimate(qwen3_next(vpp)).result.kinds;
    ASSERT_EQ(kinds.size(), 2u);
    const LayersOfKind &delta = kinds[0], &full = kinds[1];
    EXPECT_EQ(delta.name, "gdn+moe");
    EXPECT_EQ(delta.mixer, "gated_delta_net");
    EXPECT_EQ(delta.feed_forward, "experts");
    EXPECT_EQ(full.mixer, "attention");
    EXPECT_EQ(delta.layers, 36);
    EXPECT_EQ(full.layers, 12);
    ASSERT_EQ(delta.runs.size(), 12u);
    ASSERT_EQ(full.runs.size(), 12u);
    for (int i = 0; i < 12; ++i) {
      EXPECT_EQ(delta.runs[static_cast<std::size_t>(i)], (LayerRun{4 * i, 4 * i + 2}));
      EXPECT_EQ(full.runs[static_cast<std::size_t>(i)], (LayerRun{4 * i + 3, 4 * i + 3}));
    }
    EXPECT_EQ(delta.of_stage, (std::vector{9, 9, 9, 9})) << vpp;
    EXPECT_EQ(full.of_stage, (std::vector{3, 3, 3, 3})) << vpp;
  }
}

// Nemotron 3's layers are a mixer or experts alone.
TEST(LayersOfKind, APartThatIsMissingHasNoName) {
  PlanRequest request = plan_request(1, 1, 1, 8, 4096, "megatron-core");
  request.ep = 8;
  const std::vector<LayersOfKind> kinds =
      estimate(scenario_of(read_model("nemotron-3-nano-30b-a3b", test_place),
                           read_system("dgx-h200", test_place), request, 8))
          .result.kinds;
  ASSERT_EQ(kinds.size(), 3u);
  int layers = 0;
  for (const LayersOfKind& of : kinds) {
    EXPECT_EQ(of.mixer, of.name == "mamba2" ? "mamba2" : of.name == "full" ? "attention" : "");
    EXPECT_EQ(of.feed_forward, of.name == "moe" ? "experts" : "");
    EXPECT_EQ(of.sequence.states > 0, of.name == "mamba2");
    EXPECT_EQ(of.sequence.per_token > 0.0, of.name == "full");
    layers += of.layers;
  }
  EXPECT_EQ(layers, 52);
}

// A state of each of 32 value heads is 128 x 128 in fp32, and the convolution over 2 x 16 x 128
// channels of queries and keys and 32 x 128 of values needs its last three inputs in 16 bits:
//     32 x 128 x 128 x 4 + 3 x 8,192 x 2 = 2,146,304 bytes.
// Two key heads of 256 in 16 bits, keys and values: 2 x 256 x 2 x 2 = 2,048 bytes a token.
TEST(LayersOfKind, KeepWhatASequenceNeeds) {
  const std::vector<LayersOfKind> kinds = estimate(qwen3_next(1)).result.kinds;
  EXPECT_EQ(kinds[0].sequence.states, 2'146'304);
  EXPECT_EQ(kinds[0].sequence.per_token, 0.0);
  EXPECT_EQ(kinds[1].sequence.states, 0);
  EXPECT_EQ(kinds[1].sequence.per_token, 2048.0);
}

// The layers are the model's, and those of a stage without embedding and head are all that it has.
TEST(LayersOfKind, AddUpToTheModelAndToAStage) {
  const Scenario scenario = qwen3_next(1);
  const std::vector<LayersOfKind> kinds = estimate(scenario).result.kinds;
  const ParameterCount count = count_parameters(scenario.model);
  std::int64_t all = 0, active = 0, of_stage = 0;
  Bytes kept;
  for (const LayersOfKind& of : kinds) {
    all += of.layers * of.parameters;
    active += of.layers * of.active_parameters;
    of_stage += of.of_stage[1] * of.rank_parameters;
    kept += static_cast<double>(of.of_stage[1]) * of.kept;
  }
  EXPECT_EQ(all, std::accumulate(count.layers.begin(), count.layers.end(), std::int64_t{0}));
  EXPECT_EQ(active, count.active - count.embedding - count.head - count.final_norm);
  EXPECT_EQ(of_stage, parameters_on_rank(scenario, 1).sum());
  const Bytes in_memory = activation_parts(scenario, RoutedLoads{scenario})[1].micro_batch[0];
  EXPECT_NEAR(kept / in_memory, 1.0, 1e-12);
}

TEST(LayersOfKind, AreNoneWhereAllLayersAreAlike) {
  for (const char* model : {"llama3-8b", "falcon-h1-7b"}) {
    const Scenario scenario =
        scenario_of(read_model(model, test_place), read_system("dgx-h200", test_place),
                    plan_request(1, 1, 1, 8, 2048, "megatron-core"), 8);
    EXPECT_TRUE(layers_by_kind(scenario, StepCost{}).empty()) << model;
  }
}

TEST(LayersOfKind, RunsAreRangesAndSingleLayers) {
  EXPECT_EQ(runs_text({}), "");
  EXPECT_EQ(runs_text({{0, 2}, {4, 4}, {6, 1007}}), "0-2, 4, 6-1,007");
}

}  // namespace
}  // namespace orrery::layers_of_kind_test
