// Every small plan of schedules whose backward passes come in two, four ways: folded or not,
// contracted or not.
#include <gtest/gtest.h>

#include "sim/engine/task_graph.hpp"
#include "sim/training/contraction.hpp"
#include "sim/training/estimate.hpp"
#include "sim/training/training_step.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::split_backward_test {
namespace {

const Schedule* const kinds[] = {&zb_h1(), &zb_h2(), &zb_1p(), &zb_2p(), &dualpipe()};

void expect_sound(const Scenario& scenario, const Estimate& estimate) {
  EXPECT_EQ(verify(estimate.step, scenario.plan), "");
  const double step = estimate.result.step_time.si();
  EXPECT_NEAR(estimate.result.busiest().sum().si(), step, 1e-9 * step);
  EXPECT_LE(estimate.result.lower_bound.si(), step * (1.0 + 1e-6));
  EXPECT_GE(estimate.result.lower_bound.si(), 0.5 * step);
  EXPECT_NEAR(estimate.result.range.path.total().si(), step, 1e-6 * step);
  // The bytes sent are received.
  double sent = 0.0;
  double received = 0.0;
  for (int i = 0; i < estimate.step.graph.size(); ++i)
    for (const Flow& flow : estimate.step.graph.task(TaskId{i}).flows)
      for (const LinkUse& use : flow.route) {
        const LinkKind kind = estimate.topology.link(use.link).kind;
        const bool up = kind == LinkKind::nvlink_up || kind == LinkKind::nic_up;
        (up ? sent : received) += flow.bytes.si();
      }
  EXPECT_NEAR(sent, received, 1e-9 * sent);
}

void expect_same_four_ways(const Scenario& scenario) {
  const Estimate folded = estimate(scenario);
  expect_sound(scenario, folded);
  const double step = folded.result.step_time.si();
  for (const Detail detail : {Detail{.unfolded = true}, Detail{.expanded = true},
                              Detail{.unfolded = true, .expanded = true}}) {
    const Estimate other = estimate(scenario, detail);
    expect_sound(scenario, other);
    EXPECT_NEAR(other.result.step_time.si() / step, 1.0,
                detail.expanded ? contraction_tolerance : 1e-7);
  }
  EstimateContext context{scenario.system};
  EXPECT_NEAR(step_time(scenario, context).si() / step, 1.0, contraction_tolerance);
}

template <class Visit>
int for_each_plan(const Model& model, const System& system, int gpus, const Visit& visit) {
  int plans = 0;
  for (const Schedule* kind : kinds)
    for (int tp : {1, 2})
      for (int pp : {2, 4})
        for (int variant = 0; variant < 4; ++variant) {
          const int dp = gpus / (tp * pp);
          const bool zero = variant & 1, overlap = variant & 2;
          PlanRequest request = plan_request(tp, pp, 1, 2 * pp * dp, 240, "megatron-core");
          request.schedule = kind;
          request.zero = zero;
          request.dp_overlap = overlap;
          for (bool validated : {false, true}) {
            // Each once, so that both are seen with everything else.
            if (validated != ((variant + tp + pp / 2) % 2 == 0)) continue;
            Scenario scenario = scenario_of(model, system, request, gpus);
            scenario.software.optimizer_post_validation = validated;
            SCOPED_TRACE(kind->name() + " tp=" + std::to_string(tp) + " pp=" + std::to_string(pp) +
                         " zero=" + std::to_string(zero) + " overlap=" + std::to_string(overlap) +
                         " validated=" + std::to_string(validated));
            visit(scenario);
            ++plans;
          }
        }
  return plans;
}

Model dense() {
  Model model = small_gpt(8, 1024, 8, 4096);
  model.tied_embeddings = true;
  return model;
}

TEST(SplitBackward, SixteenGpusInFourNodes) {
  EXPECT_EQ(
      for_each_plan(dense(), read_system("four-by-four", test_place), 16, expect_same_four_ways),
      5 * 2 * 2 * 4);
}

// Stages that do not nest into nodes: whose ranks are alike is found out.
TEST(SplitBackward, SixteenGpusInNodesOfSix) {
  System system = read_system("four-by-four", test_place);
  system.gpus_per_node = system.nvlink_domain = 6;
  system.nics_per_node = 3;
  EXPECT_EQ(for_each_plan(dense(), system, 16, expect_same_four_ways), 5 * 2 * 2 * 4);
}

// Two passes together, dispatch and combine of each overlapped with the other's kernels; weight
// gradients in their place or where they fill idle time.
TEST(SplitBackward, DualPipeWithExperts) {
  const System system = read_system("four-by-four", test_place);
  for (int pp : {2, 4})
    for (int ep : {1, 2, 4})
      for (bool delay : {false, true}) {
        if (delay && ep == 1) continue;
        PlanRequest request = plan_request(1, pp, 1, 2 * pp * (16 / pp), 256, "dualpipe");
        request.schedule = &dualpipe();
        request.ep = ep;
        request.ep_overlap = request.delay_wgrad = delay;
        const Scenario scenario =
            scenario_of(small_mixture(8, 1024, 8, 4096, 8, 2, 1), system, request, 16);
        SCOPED_TRACE("pp=" + std::to_string(pp) + " ep=" + std::to_string(ep) +
                     " delay=" + std::to_string(delay));
        EXPECT_EQ(scenario.plan.ep_overlap, ep > 1);
        expect_same_four_ways(scenario);
      }
}

}  // namespace
}  // namespace orrery::split_backward_test
