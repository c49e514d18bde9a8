// A backward pass in two is the whole: kernels, traffic, what decides; only what was hidden behind
// weight gradients is bare.
#include <gtest/gtest.h>

#include "sim/layers/layer_ops.hpp"
#include "sim/layers/step_cost.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::split_backward_test {
namespace {

GroupShapes shapes_of(int tp) {
  GroupShapes shapes;
  shapes.tensor = {tp, 1, tp};
  shapes.expert = {4, 1, 4};
  return shapes;
}

Op product(GemmPass pass) { return gemm("", pass, 64, 64, 64); }
Op gather(double hidden) {
  return collective("", CollectiveKind::all_gather, 1e6, hidden, GroupKind::tensor);
}

TEST(PartOf, ExposesWhatOverlappedWeightGradients) {
  const Ops whole{
      gather(0.0), product(GemmPass::dgrad), gather(1.0), product(GemmPass::wgrad), memory("", 8),
      gather(0.5), product(GemmPass::dgrad)};
  const Ops inputs = part_of(whole, BackwardPart::inputs);
  ASSERT_EQ(inputs.size(), 6u);
  EXPECT_EQ(inputs[2].hidden, 0.0);  // Its product is put off.
  EXPECT_EQ(inputs[4].hidden, 0.5);  // Its product is still there.
  const Ops weights = part_of(whole, BackwardPart::weights);
  ASSERT_EQ(weights.size(), 1u);
  EXPECT_EQ(weights[0].pass, GemmPass::wgrad);
  EXPECT_EQ(part_of(whole, BackwardPart::whole).size(), whole.size());
}

void expect_both_to_be_the_whole(const StageCost& stage, bool hides) {
  const PassCost& whole = stage.backward;
  const PassCost& inputs = stage.input_gradient;
  const PassCost& weights = stage.weight_gradient;
  EXPECT_GT(weights.compute, Seconds{});
  // Weight gradients that hide nothing lose no multiprocessors (overlap_loss).
  const double gained = (whole.compute - inputs.compute - weights.compute).si();
  const double most = hides ? whole.taken.total().si() : 0.0;
  EXPECT_LE(gained, most + 1e-12 * whole.compute.si());
  EXPECT_GE(gained, -1e-12 * whole.compute.si());
  EXPECT_NEAR(inputs.communication.si(), whole.communication.si(), 1e-12);
  EXPECT_FALSE(weights.has_collectives());
  for (std::size_t group = 0; group < whole.network_bytes.size(); ++group) {
    EXPECT_NEAR(inputs.network_bytes[group].si(), whole.network_bytes[group].si(), 1e-3);
    EXPECT_NEAR(inputs.scale_up_bytes[group].si(), whole.scale_up_bytes[group].si(), 1e-3);
  }
  const double both = (inputs.time() + weights.time()).si();
  EXPECT_GE(both, whole.time().si() * (1.0 - 1e-12));
  if (!hides) {
    EXPECT_NEAR(both, whole.time().si(), 1e-12 * both);
  }
  for (const PassCost* part : {&inputs, &weights})
    EXPECT_NEAR(part->decisive.total().si(), part->time().si(), 1e-12);
  // Buckets add up.
  PassCost of_buckets;
  for (const Bucket& bucket : stage.buckets) of_buckets.append(bucket.weight_gradient);
  EXPECT_NEAR(of_buckets.compute.si(), weights.compute.si(), 1e-12);
}

TEST(SplitBackward, IsTheWhole) {
  Model mixture = small_mixture(8, 1024, 8, 4096, 8, 2, 1);
  mixture.prediction_layers = 1;
  for (const Model& model : {small_gpt(8, 1024, 8, 4096), mixture})
    for (int tp : {1, 2})
      for (const std::string software : {"megatron-2021", "megatron-core"}) {
        PlanRequest request = plan_request(tp, 4, 1, 32, 256, software);
        request.schedule = &zb_h1();
        request.sp = tp > 1;
        if (model.experts) request.ep = 4;
        Scenario scenario =
            scenario_of(model, read_system("four-by-four", test_place), request, 16 * tp);
        // No floors: each part would have its own.
        scenario.software.host_launch = Seconds{};
        scenario.software.expert_layer_host = {};
        const GroupShapes shapes = shapes_of(tp);
        const bool hides =
            tp > 1 && (scenario.plan.overlap_tp_gradients || scenario.plan.tp_hidden > 0.0);
        for (const StageCost& stage :
             price_step(scenario, nullptr, CollectiveTime{scenario.system}, shapes).stages)
          expect_both_to_be_the_whole(stage, hides);
      }
}

// Only schedules that have it so pay for pricing both.
TEST(SplitBackward, IsPricedWhereItIsNeeded) {
  for (const Schedule* kind : {&one_f_one_b(), &zb_h1()}) {
    PlanRequest request = plan_request(1, 4, 1, 32, 256, "megatron-core");
    request.schedule = kind;
    const Scenario scenario = scenario_of(small_gpt(8, 1024, 8, 4096),
                                          read_system("four-by-four", test_place), request, 16);
    const auto stages =
        price_step(scenario, nullptr, CollectiveTime{scenario.system}, shapes_of(1)).stages;
    ASSERT_EQ(stages.size(), 4u);
    for (const StageCost& stage : stages) {
      EXPECT_EQ(stage.input_gradient.segments.empty(), kind == &one_f_one_b());
      EXPECT_EQ(stage.weight_gradient.segments.empty(), kind == &one_f_one_b());
    }
  }
}

}  // namespace
}  // namespace orrery::split_backward_test
