#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/engine/simulation.hpp"
#include "sim/training/estimate.hpp"
#include "tests/exhaustive/all_plans.hpp"

namespace orrery::shortcuts_test {
namespace {

// Links so slow that traffic meets.
System slow_nodes_of(int gpus) {
  System system = read_system("four-by-four", test_place);
  system.gpus_per_node = system.nvlink_domain = system.nics_per_node = gpus;
  system.scale_up = BytesPerSecond{10e9};
  system.nic = BytesPerSecond{1e9};
  return system;
}

Seconds executed(const Scenario& scenario, EstimateContext& context, Contraction contraction) {
  const Layout& layout = context.layout(Placement{scenario.plan, scenario.system});
  const Topology& topology = context.topology(scenario.plan.gpus());
  const auto cost = std::make_shared<const StepCost>(
      price_step(scenario, context.kernels(scenario.plan.dtype), context.collectives(scenario.plan),
                 layout.shapes));
  return execute(build_training_step(
                     scenario, cost,
                     StepTraffic{scenario, context.collectives(scenario.plan), layout.shapes},
                     layout.classes, topology, contraction)
                     .graph,
                 topology)
      .makespan.seconds();
}

// Every pass as one fused task, against every collective expanded.
TEST(FusedTasks, TakeTheTimeOfTheirParts) {
  for (int in_node : {4, 2}) {
    const System system = slow_nodes_of(in_node);
    EstimateContext context{system};
    Contraction fused{false};
    fused.fused = true;
    const int plans =
        for_each_plan(small_gpt(8, 256, 8, 2048), system, 8, [&](const Scenario& scenario) {
          EXPECT_LT(
              difference(executed(scenario, context, fused), executed(scenario, context, false)),
              1e-12)
              << describe(scenario);
        });
    EXPECT_GT(plans, 50);
  }
}

// A step extrapolated from its steady state, against all of its micro-batches, and against the
// expanded step within the tolerance of every shortcut. Other steps are simulated whole.
TEST(SteadyState, GoesOnAsItBegan) {
  for (int in_node : {4, 2}) {
    const System system = slow_nodes_of(in_node);
    EstimateContext context{system};
    int extrapolated = 0;
    const int plans = for_each_plan(small_gpt(8, 256, 8, 2048), system, 8, [&](Scenario scenario) {
      scenario.plan.microbatches *= 20;
      scenario.plan.gbs *= 20;
      SCOPED_TRACE(describe(scenario));
      const Estimate whole = estimate(scenario, context);
      EXPECT_LT(difference(step_time(scenario, context), whole.result.step_time), 1e-3);
      const auto from_excerpt = step_time_from_excerpt(scenario, context);
      if (!from_excerpt) return;
      ++extrapolated;
      EXPECT_LT(difference(*from_excerpt, whole.result.step_time), 1e-12);
    });
    RecordProperty("told" + std::to_string(in_node), extrapolated);
    EXPECT_GT(extrapolated, plans / 2);
  }
}

// The same of a pipeline that drains behind each local batch: its rounds are alike.
TEST(SteadyState, GoesOnRoundByRound) {
  const System system = slow_nodes_of(4);
  EstimateContext context{system};
  int extrapolated = 0;
  const int plans = for_each_plan(small_gpt(8, 256, 8, 2048), system, 8, [&](Scenario scenario) {
    if (scenario.plan.pp == 1) return;
    scenario.plan.local_batch = scenario.plan.gbs / scenario.plan.dp;
    scenario.plan.microbatches *= 12;
    scenario.plan.gbs *= 12;
    SCOPED_TRACE(describe(scenario));
    const Estimate whole = estimate(scenario, context);
    const auto from_excerpt = step_time_from_excerpt(scenario, context);
    if (!from_excerpt) return;
    ++extrapolated;
    EXPECT_LT(difference(*from_excerpt, whole.result.step_time), 1e-12);
  });
  EXPECT_GT(extrapolated, plans / 4);
}

// Every stage is like the next, so that collectives and transfers of several end at one moment by
// different sums. In seconds, whose last bits broke such ties now this way, now that, this step
// repeated itself nowhere; in ticks it does, and extrapolation gives the step to the last bit.
TEST(SteadyState, DoesNotHangOnTheLastBit) {
  const System system = read_system("dgx-a100-80gb", test_place);
  EstimateContext context{system};
  PlanRequest request;
  request.software = "megatron-2021";
  request.wait_for_others = false;  // What is executed has no waiting.
  request.pp = 4;
  request.recompute = Recompute::full;
  request.sp = request.tp_overlap = request.dp_overlap = false;
  request.zero = 0;
  request.gbs = 1536;
  Contraction fused{false};
  fused.fused = true;
  int extrapolated = 0;
  for (const auto& [tp, mbs] : {std::pair{16, 2}, {32, 4}})
    for (int vpp : {2, 3, 4, 6, 12}) {
      request.tp = tp;
      request.mbs = mbs;
      request.vpp = vpp;
      const Scenario scenario =
          make_scenario(read_model("gpt3-175b", test_place), system, request, 1024, test_place);
      SCOPED_TRACE(describe(scenario));
      ASSERT_EQ(scenario.plan.microbatches, 48);
      const auto from_excerpt = step_time_from_excerpt(scenario, context);
      // By the A100's prices of kernels some come back to no state that they had.
      if (!from_excerpt) continue;
      ++extrapolated;
      EXPECT_EQ(from_excerpt->si(), executed(scenario, context, fused).si());
    }
  EXPECT_GE(extrapolated, 8);
}

// Tensor and context groups over eight nodes, whose collectives meet the transfers of 16 stages on
// slower NICs: at some speeds what a period more adds to the step takes turns of two lengths. At
// which depends on the prices of kernels.
TEST(SteadyState, SeesCyclesOfSeveralPeriods) {
  int of_two = 0;
  for (int percent = 50; percent <= 90; percent += 4)
    for (const int cp : {2, 4}) {
      System system = read_system("dgx-a100-80gb", test_place);
      system.nic = 0.01 * percent * system.nic;
      EstimateContext context{system};
      PlanRequest request;
      request.tp = 16;
      request.pp = 16;
      request.cp = cp;
      request.vpp = 2;
      request.mbs = 2;
      request.seq = 1024;
      request.sp = false;
      request.tp_overlap = false;
      request.zero = 0;
      request.dp_overlap = false;
      request.recompute = Recompute::full;
      request.wait_for_others = false;  // What is executed has no waiting.
      Contraction fused{false};
      fused.fused = true;
      std::vector<Seconds> whole;
      bool all_extrapolated = true;
      for (int period = 23; period <= 26; ++period) {
        request.gbs = 8 / cp * period * request.pp;
        const Scenario scenario =
            make_scenario(read_model("gpt3-175b", test_place), system, request, 1024, test_place);
        SCOPED_TRACE(describe(scenario));
        whole.push_back(executed(scenario, context, fused));
        if (period == 23) continue;
        const auto from_excerpt = step_time_from_excerpt(scenario, context);
        all_extrapolated = all_extrapolated && from_excerpt;
        if (from_excerpt) {
          EXPECT_LT(difference(*from_excerpt, whole.back()), 1e-9);
        }
      }
      const Seconds added[] = {whole[1] - whole[0], whole[2] - whole[1], whole[3] - whole[2]};
      if (all_extrapolated && difference(added[0], added[1]) > 5e-5 &&
          difference(added[0], added[2]) < 1e-9)
        ++of_two;
    }
  EXPECT_GE(of_two, 1);
}

// Where leaves have half the uplinks, the ranks of a group get their inputs one after another. A
// pass that is one task begins with the last of them, as its first collective would. Where kernels
// overlap every collective of context groups, the early ones go on, and passes are expanded.
TEST(Contraction, WaitsForTheLastOfAGroup) {
  for (const auto& [tp, cp] : std::vector<std::pair<int, int>>{{2, 2}, {4, 1}, {1, 4}, {1, 2}}) {
    SCOPED_TRACE(std::to_string(tp) + " " + std::to_string(cp));
    PlanRequest request = plan_request(tp, 4, 1, 16, 512, "megatron-core");
    request.cp = cp;
    const Scenario scenario =
        scenario_of(small_gpt(4, 1024, 16, 1024),
                    read_system("hgx-h100-leaf-spine-2to1", test_place), request, 64);
    const Estimate contracted = estimate(scenario);
    const Estimate detailed = estimate(scenario, {.expanded = true});
    if (cp == 1) {
      EXPECT_LT(contracted.result.tasks, detailed.result.tasks);
    }
    EXPECT_NEAR(contracted.result.step_time / detailed.result.step_time, 1.0, 1e-4);
  }
}

}  // namespace
}  // namespace orrery::shortcuts_test
