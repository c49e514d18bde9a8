#include "sim/search/bound.hpp"

#include <gtest/gtest.h>

#include "sim/training/estimate.hpp"
#include "tests/exhaustive/all_plans.hpp"

namespace orrery::bound_test {
namespace {

Seconds bound_of(const Scenario& scenario, EstimateContext& context) {
  Scenario priced = scenario;
  priced.plan.zero = 0;
  return step_lower_bound(
      scenario,
      pass_times(priced, context.kernels(priced.plan.dtype), context.collectives(scenario.plan)),
      context.collectives(scenario.plan));
}

// A plan of eight GPUs.
PlanRequest on_eight(int tp, int pp, int microbatches_a_stage) {
  return plan_request(tp, pp, 1, microbatches_a_stage * 8 / tp, 240, "megatron-core");
}

// Every plan of `gpus` GPUs: no simulation is shorter than its bound, and the bound is no idle one.
void expect_bounds_hold(const Model& model, const System& system, int gpus) {
  EstimateContext context{system};
  double closest = 0.0;
  const int plans = for_each_plan(model, system, gpus, [&](const Scenario& scenario) {
    const Seconds bound = bound_of(scenario, context);
    const Seconds time = step_time(scenario, context);
    EXPECT_LE(bound, time) << describe(scenario);
    closest = std::max(closest, bound / time);
  });
  EXPECT_GT(plans, 50);
  EXPECT_GT(closest, 0.6);
}

TEST(StepLowerBound, HoldsInFullNodes) {
  expect_bounds_hold(small_gpt(8, 256, 8, 2048), read_system("four-by-four", test_place), 8);
}

TEST(StepLowerBound, HoldsWhereGroupsLieUnevenly) {
  System system = read_system("four-by-four", test_place);
  system.gpus_per_node = system.nvlink_domain = system.nics_per_node = 3;
  expect_bounds_hold(small_gpt(12, 192, 12, 2048), system, 12);
}

// Stages of 8 and 12 GPUs in domains of 6: groups inside passes lie in one domain, or straddle two.
TEST(StepLowerBound, HoldsWhereStagesLieUnevenly) {
  System system = read_system("four-by-four", test_place);
  system.gpus_per_node = system.nvlink_domain = system.nics_per_node = 6;
  expect_bounds_hold(small_gpt(12, 192, 12, 2048), system, 24);
}

// Nine stages of 16 GPUs in domains of 72, where gradients alone straddle two domains.
TEST(StepLowerBound, IsCloseWhereGradientsLieUnevenly) {
  const System system = read_system("gb200-nvl72", test_place);
  EstimateContext context{system};
  const Model model = read_model("llama3-70b", test_place);
  for (const int tp : {2, 4, 8}) {
    const Scenario scenario =
        scenario_of(model, system, plan_request(tp, 9, 1, 64, 8192, "megatron-core"), 144);
    EXPECT_FALSE((Placement{scenario.plan, scenario.system}.regular()));
    EXPECT_EQ(KnownPassTimes{context}.evenness(scenario), Evenness::inside_passes);
    const Seconds bound = bound_of(scenario, context), time = step_time(scenario, context);
    EXPECT_LE(bound, time) << tp;
    EXPECT_GT(bound / time, 0.85) << tp;
  }
}

TEST(StepLowerBound, HoldsWithAFasterAndASlowerGpu) {
  System system = read_system("four-by-four", test_place);
  system.gpu_overrides.push_back({0, 0, 1.25});
  system.gpu_overrides.push_back({0, 1, 0.5});
  expect_bounds_hold(small_gpt(8, 256, 8, 2048), system, 8);
}

// Where the backward pass comes in two, and where stages do not wait for each other at the end.
TEST(StepLowerBound, HoldsOfSplitBackwardPasses) {
  const System system = read_system("four-by-four", test_place);
  Model model = small_gpt(8, 256, 8, 2048);
  EstimateContext context{system};
  double closest = 0.0;
  for (const Schedule* kind : {&one_f_one_b(), &zb_h1(), &zb_h2(), &zb_1p(), &zb_2p(), &dualpipe()})
    for (int tp : {1, 2})
      for (int pp : {2, 4})
        for (int zero : {0, 1})
          for (bool validated : {false, true})
            for (int per_stage : {2, 8}) {
              PlanRequest request = on_eight(tp, pp, per_stage);
              request.schedule = kind;
              request.zero = zero;
              Scenario scenario = scenario_of(model, system, request, 8);
              scenario.software.optimizer_post_validation = validated;
              const Seconds bound = bound_of(scenario, context);
              const Seconds time = step_time(scenario, context);
              EXPECT_LE(bound, time) << kind->name() << " " << describe(scenario);
              closest = std::max(closest, bound / time);
            }
  EXPECT_GT(closest, 0.8);
}

// Experts that are filled unevenly, priced as they are.
TEST(StepLowerBound, OfItsOwnRoutingHolds) {
  const System system = read_system("four-by-four", test_place);
  EstimateContext context{system};
  double closest = 0.0;
  int plans = 0;
  for (const char* routing : {"zipf:0.5", "zipf:1", "hot:0.9"})
    for (const auto& [tp, pp, ep] :
         {std::tuple{1, 1, 4}, {1, 2, 2}, {1, 4, 2}, {2, 2, 2}, {2, 1, 4}})
      for (int zero : {0, 1, 3})
        for (const Recompute recompute : {Recompute::none, Recompute::full})
          for (int per_stage : {3, 12}) {
            PlanRequest request = on_eight(tp, pp, per_stage);
            request.ep = ep;
            request.zero = zero;
            request.recompute = recompute;
            request.routing = routing;
            const Scenario scenario =
                scenario_of(small_mixture(8, 256, 4, 1024, 4, 1), system, request, 8);
            const auto bound = KnownPassTimes{context}.routed_bound(scenario);
            ASSERT_TRUE(bound);
            const Seconds time = step_time(scenario, context);
            EXPECT_LE(*bound, time) << routing << " " << describe(scenario);
            closest = std::max(closest, *bound / time);
            ++plans;
          }
  EXPECT_EQ(plans, 180);
  EXPECT_GT(closest, 0.8);
}

// Where experts take most of the time, it is closer than the bound of even routing.
TEST(StepLowerBound, OfItsOwnRoutingIsCloser) {
  const System system = read_system("dgx-h100", test_place);
  EstimateContext context{system};
  PlanRequest request = plan_request(2, 2, 4, 128, 4096, "megatron-core");
  request.ep = 4;
  request.routing = "zipf:0.3";
  const Scenario scenario =
      scenario_of(read_model("mixtral-8x7b", test_place), system, request, 64);
  const auto bound = KnownPassTimes{context}.routed_bound(scenario);
  ASSERT_TRUE(bound);
  EXPECT_GT(*bound / bound_of(scenario, context), 1.05);
  request.routing = "uniform";
  EXPECT_FALSE(KnownPassTimes{context}.routed_bound(
      scenario_of(read_model("mixtral-8x7b", test_place), system, request, 64)));
}

// A pipeline of equal stages and long kernels: (m + p - 1) (F + B) is the step but for transfers.
TEST(StepLowerBound, IsCloseWhereKernelsAreLong) {
  const System system = read_system("dgx-a100-80gb", test_place);
  PlanRequest request = plan_request(8, 8, 1, 1536, 2048, "megatron-2021");
  request.recompute = Recompute::full;
  const Scenario scenario = scenario_of(read_model("gpt3-175b", test_place), system, request, 1024);
  EstimateContext context{system};
  EXPECT_GT(bound_of(scenario, context) / step_time(scenario, context), 0.97);
}

}  // namespace
}  // namespace orrery::bound_test
