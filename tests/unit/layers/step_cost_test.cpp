#include "sim/layers/step_cost.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "sim/layers/layer_activations.hpp"
#include "sim/layers/layer_ops.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "sim/layers/step_traffic.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::step_cost_test {
namespace {

const GroupShapes four_ranks{{2, 1, 2}, {2, 1, 2}, {4, 1, 4}};

Scenario scenario_on(const Model& model, const std::string& software, int tp, int pp, int dp,
                     bool sp = false) {
  PlanRequest request = plan_request(tp, pp, 1, 4 * dp, 64, software);
  request.sp = sp;
  return scenario_of(model, read_system("four-by-four", test_place), request, tp * pp * dp);
}

StepCost price(const Scenario& scenario) {
  return price_step(scenario, nullptr, CollectiveTime{scenario.system}, four_ranks);
}

// 4 layers of 12 x 2048^2 = 50.3 million parameters and a head: 201 million; with buckets of
// 40 million there are four, one a layer; with dp = 100 they close at 100 million: two.
TEST(StepCost, BucketsAreCutAtMegatronsSize) {
  const Model model = small_gpt(4, 2048, 16, 128);
  EXPECT_EQ(price(scenario_on(model, "megatron-core", 1, 1, 2)).stages[0].buckets.size(), 4u);
  EXPECT_EQ(price(scenario_on(model, "megatron-core", 1, 1, 100)).stages[0].buckets.size(), 2u);
  EXPECT_EQ(price(scenario_on(small_gpt(4, 64, 4, 128), "megatron-core", 1, 1, 2))
                .stages[0]
                .buckets.size(),
            1u);
}

// Layers of each kind together are the layers of the model: a stage of three times as many takes
// twice their time longer.
TEST(StepCost, ShapesOfLayersAddUp) {
  const auto priced = [](int repeats) {
    const Model model = parse_model(JsonValue::parse(
        R"({"hidden": 1024, "vocab": 32768, "seq": 4096,
            "mixers": {"ssm": {"kind": "mamba2", "heads": 32, "head_dim": 64, "state": 128,
                               "groups": 8, "conv": 4, "chunk": 128},
                       "full": {"kind": "attention", "heads": 16, "kv_heads": 4, "head_dim": 64}},
            "ffns": {"mlp": {"width": 4096}},
            "pattern": [[)" +
            std::to_string(repeats) + R"(, ["ssm+none", "none+mlp", "full+mlp", "ssm+none"]]]})",
        "model.json"));
    const Scenario scenario = scenario_of(model, read_system("dgx-h100", test_place),
                                          plan_request(2, 1, 1, 8, 4096, "megatron-core"), 8);
    return price_step(scenario, nullptr, CollectiveTime{scenario.system},
                      GroupShapes{{2, 2, 1}, {8, 8, 1}, {8, 8, 1}});
  };
  const StepCost one = priced(1), three = priced(3);
  ASSERT_EQ(one.shapes.size(), 3u);
  EXPECT_EQ(one.shapes[0].layers, 2);
  EXPECT_EQ(one.shapes[1].layers, 1);
  Seconds forward, backward;
  for (std::size_t i = 0; i < one.shapes.size(); ++i) {
    EXPECT_EQ(three.shapes[i].layers, 3 * one.shapes[i].layers);
    EXPECT_NEAR(three.shapes[i].backward / one.shapes[i].backward, 3.0, 1e-9);
    forward += one.shapes[i].forward;
    backward += one.shapes[i].backward;
  }
  const StageCost &a = one.stages[0], &b = three.stages[0];
  EXPECT_NEAR((b.forward.time() - a.forward.time()) / forward, 2.0, 1e-6);
  EXPECT_NEAR((b.backward.time() - a.backward.time()) / backward, 2.0, 1e-6);
}

// Layers whose products stay in bf16 cost what they cost in a plan in bf16, in time and in kept
// activations, whichever end they lie at; each adds as much. Experts' products stay with them.
TEST(StepCost, LayersInSixteenBitsAreThoseOfAPlanInBf16) {
  for (const std::string model : {"llama3-8b", "mixtral-8x7b", "nemotron-3-nano-30b-a3b"}) {
    const auto scenario = [&](Dtype dtype, int start, int end) {
      PlanRequest request = plan_request(1, 1, 1, 8, 4096, "megatron-core");
      request.dtype = dtype;
      request.bf16_start_layers = start;
      request.bf16_end_layers = end;
      if (model != "llama3-8b") request.ep = 8;
      return scenario_of(read_model(model, test_place), read_system("dgx-b200", test_place),
                         request, 8);
    };
    const auto forward = [&](const Scenario& one) {
      return price_step(one, nullptr, CollectiveTime{one.system},
                        GroupShapes{{8, 8, 1}, {8, 8, 1}, {8, 8, 1}})
          .stages[0]
          .forward.time()
          .si();
    };
    const Scenario wide = scenario(Dtype::bf16, 0, 0), narrow = scenario(Dtype::nvfp4, 0, 0);
    const int layers = wide.model.layers;
    SCOPED_TRACE(model);
    EXPECT_NEAR(forward(scenario(Dtype::nvfp4, layers, 0)) / forward(wide), 1.0, 1e-9);
    EXPECT_NEAR(forward(scenario(Dtype::nvfp4, 0, layers)) / forward(wide), 1.0, 1e-9);
    const auto kept = [](const Scenario& one, int layer) {
      return layer_activations(one, Recompute::none, one.kind_of(layer)).si();
    };
    const Scenario ends = scenario(Dtype::nvfp4, 1, 2);
    double sum = 0.0;
    for (int layer = 0; layer < layers; ++layer) {
      const bool sixteen = layer < 1 || layer >= layers - 2;
      EXPECT_EQ(ends.kind_of(layer).sixteen_bit, sixteen);
      EXPECT_EQ(kept(ends, layer), kept(sixteen ? wide : narrow, layer));
      sum += sixteen ? 1.0 : 0.0;
    }
    EXPECT_EQ(sum, 3.0);
    if (model == "llama3-8b") {
      const double each = (forward(wide) - forward(narrow)) / layers;
      EXPECT_NEAR(forward(ends), forward(narrow) + 3.0 * each, 1e-9 * forward(wide));
    }
  }
}

// Whatever is cut, buckets add up to their stage: time, bytes, parameters.
TEST(StepCost, BucketsAddUpToTheStage) {
  for (int pp : {1, 2, 4})
    for (int tp : {1, 2})
      for (const std::string software : {"megatron-2021", "megatron-core"}) {
        const Scenario scenario =
            scenario_on(small_gpt(8, 2048, 16, 128), software, tp, pp, 2, tp > 1);
        for (const StageCost& stage : price(scenario).stages) {
          Seconds forward, backward;
          std::int64_t parameters = 0;
          for (const Bucket& bucket : stage.buckets) {
            forward += bucket.forward.time();
            backward += bucket.backward.time();
            parameters += bucket.parameters.sum();
          }
          EXPECT_NEAR(forward.si(), stage.forward.time().si(), 1e-12);
          EXPECT_NEAR(backward.si(), stage.backward.time().si(), 1e-12);
          EXPECT_EQ(parameters, stage.parameters.sum());
        }
      }
}

// The embedding is on the first stage, the head on the last; those between are alike.
TEST(StepCost, StagesHoldWhatTheyHold) {
  const Scenario scenario = scenario_on(small_gpt(8, 512, 8, 51200), "megatron-core", 1, 4, 1);
  const StepCost cost = price(scenario);
  ASSERT_EQ(cost.stages.size(), 4u);
  EXPECT_EQ(cost.stages[1].forward.time(), cost.stages[2].forward.time());
  EXPECT_GT(cost.stages[0].forward.time(), cost.stages[1].forward.time());
  EXPECT_GT(cost.stages[3].forward.time(), cost.stages[0].forward.time());
  EXPECT_EQ(cost.stages[3].parameters.dense, cost.stages[1].parameters.dense + 51200 * 512 + 512);
}

// Full recomputation adds a forward pass of the layers to each backward pass.
TEST(StepCost, RecomputationLengthensTheBackwardPass) {
  Scenario scenario = scenario_on(small_gpt(8, 512, 8, 128), "megatron-2021", 1, 4, 1);
  const StepCost without = price(scenario);
  scenario.plan.recompute = Recompute::full;
  const StepCost with = price(scenario);
  EXPECT_NEAR((with.stages[1].backward.time() - without.stages[1].backward.time()).si(),
              without.stages[1].forward.time().si(), 1e-12);
}

// 52 bytes a parameter through memory at 0.85 TB/s, and 2 to zero its gradient; ZeRO-1 leaves each
// of dp ranks its share of the 52.
TEST(StepCost, OptimizerIsSharedOut) {
  Scenario scenario = scenario_on(small_gpt(8, 512, 8, 128), "megatron-core", 1, 1, 4);
  const double parameters = static_cast<double>(parameters_on_rank(scenario, 0).sum());
  const double gap = scenario.software.kernel_overhead.si();
  EXPECT_NEAR(price(scenario).optimizer[0].si(), (52 / 4.0 + 2) * parameters / 0.85e12 + gap,
              1e-12);
  scenario.plan.zero = 0;
  EXPECT_NEAR(price(scenario).optimizer[0].si(), (52 + 2) * parameters / 0.85e12 + gap, 1e-12);
}

// Only where the two ends are different ranks do copies of a tied embedding meet: V/t h gradients.
TEST(StepCost, TiedGradient) {
  Model model = small_gpt(8, 512, 8, 1024);
  EXPECT_EQ(price(scenario_on(model, "megatron-core", 2, 2, 1)).tied_gradient_bytes.si(), 0.0);
  model.tied_embeddings = true;
  EXPECT_EQ(price(scenario_on(model, "megatron-core", 2, 1, 1)).tied_gradient_bytes.si(), 0.0);
  EXPECT_EQ(price(scenario_on(model, "megatron-core", 2, 2, 1)).tied_gradient_bytes.si(),
            2.0 * 512 * 512);
  EXPECT_EQ(
      price(scenario_on(model, "megatron-core-fp32-reduce", 2, 2, 1)).tied_gradient_bytes.si(),
      4.0 * 512 * 512);
}

// A rank receives its t-th and gathers the rest: without sequence parallelism, on every stage but
// the first forward and all but the last backward.
TEST(StepCost, WhatIsScatteredIsGathered) {
  const Model model = small_gpt(8, 512, 8, 128);
  const StepCost plain = price(scenario_on(model, "megatron-2021", 2, 4, 1));
  const StepCost split = price(scenario_on(model, "megatron-2021", 2, 4, 1, true));
  const double tensor = 2.0 * 64 * 512;
  EXPECT_EQ(plain.transfer_bytes.si(), tensor / 2);
  EXPECT_EQ(split.transfer_bytes.si(), tensor / 2);
  // All-gather of two ranks: 1 us + tensor / 2 / 10 GB/s.
  const double gather = 1e-6 + tensor / 2 / 10e9;
  const double embedding_less =
      (plain.stages[1].forward.communication - plain.stages[0].forward.communication).si();
  // Stage 0 has the embedding's all-reduce instead: 2 us + tensor / 10 GB/s.
  EXPECT_NEAR(embedding_less, gather - (2e-6 + tensor / 10e9), 1e-12);
}

Scenario nanotron(int pp, int dp, int zero) {
  PlanRequest request = plan_request(1, pp, 1, 4 * dp, 64, "nanotron");
  request.zero = zero;
  return scenario_of(small_gpt(8, 512, 8, 1024), read_system("four-by-four", test_place), request,
                     pp * dp);
}

// Two calls of 5 us for each rank's slice of each tensor: six of each of four layers and, at the
// ends, the embedding or the final norm and the head.
TEST(StepTraffic, TheHostCutsWeightsIntoSlices) {
  for (int dp : {2, 4}) {
    const Scenario scenario = nanotron(2, dp, 1);
    const CollectiveTime collectives{scenario.system};
    const StepTraffic traffic{scenario, collectives, four_ranks};
    EXPECT_NEAR(traffic.sliced_gather_host(0).si(), 2 * 5e-6 * dp * (4 * 6 + 1), 1e-12);
    EXPECT_NEAR(traffic.sliced_gather_host(1).si(), 2 * 5e-6 * dp * (4 * 6 + 2), 1e-12);
  }
  const Scenario other = scenario_on(small_gpt(8, 512, 8, 1024), "megatron-core", 1, 2, 2);
  const CollectiveTime collectives{other.system};
  EXPECT_EQ(StepTraffic(other, collectives, four_ranks).sliced_gather_host(0), Seconds{});
}

// Its ZeRO-1 sums up all gradients on all ranks, and after the passes by default.
TEST(StepTraffic, GradientsOfNanotronsZero1) {
  const Scenario scenario = nanotron(1, 2, 1);
  EXPECT_FALSE(scenario.plan.dp_overlap);
  EXPECT_TRUE(nanotron(1, 2, 0).plan.dp_overlap);
  const CollectiveTime collectives{scenario.system};
  const StepTraffic traffic{scenario, collectives, four_ranks};
  EXPECT_EQ(traffic.gradients(1'000'000, GroupKind::data).time(),
            collectives(CollectiveKind::all_reduce, Bytes{4e6}, four_ranks.data).time());
  EXPECT_EQ(traffic.bucketed_gradients(100'000'000, GroupKind::data).time(),
            traffic.gradients(100'000'000, GroupKind::data).time());
}

// Without ZeRO buckets of 25 MiB in 16 bits, each closed by the tensor that fills it: 100 MB are
// three, which travel one after another as 133 MB each in 32 bits; 20 MB are one.
TEST(StepTraffic, BucketsOfDistributedDataParallel) {
  const Scenario scenario = nanotron(1, 2, 0);
  const CollectiveTime collectives{scenario.system};
  const StepTraffic traffic{scenario, collectives, four_ranks};
  const auto time = [&](double bytes) {
    return collectives(CollectiveKind::all_reduce, Bytes{bytes}, four_ranks.data).time().si();
  };
  EXPECT_NEAR(traffic.bucketed_gradients(50'000'001, GroupKind::data).time().si(),
              3 * time(4.0 * 16'666'667), 1e-12);
  EXPECT_NEAR(traffic.bucketed_gradients(10'000'000, GroupKind::data).time().si(), time(4e7),
              1e-12);
}

}  // namespace
}  // namespace orrery::step_cost_test
