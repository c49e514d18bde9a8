// A schedule that was printed and read again is the schedule: every figure of an estimate is the
// same, to the last bit. And V-shaped ones four ways: folded or not, contracted or not.
#include <gtest/gtest.h>

#include "sim/training/contraction.hpp"
#include "sim/training/estimate.hpp"
#include "sim/training/training_step.hpp"
#include "tests/support/scenarios.hpp"
#include "tests/support/schedules.hpp"

namespace orrery::user_schedule_test {
namespace {

Model dense() {
  Model model = small_gpt(8, 1024, 8, 4096);
  model.tied_embeddings = true;
  return model;
}

void expect_same(const Estimate& one, const Estimate& other) {
  EXPECT_EQ(verify(other.step, other.result.scenario.plan), "");
  EXPECT_EQ(one.result.step_time, other.result.step_time);
  EXPECT_EQ(one.result.lower_bound, other.result.lower_bound);
  EXPECT_EQ(one.result.busiest().pp_bubble, other.result.busiest().pp_bubble);
  EXPECT_EQ(one.result.busiest().pp_exposed, other.result.busiest().pp_exposed);
  EXPECT_EQ(one.result.busiest().dp_exposed, other.result.busiest().dp_exposed);
  EXPECT_EQ(one.result.tasks, other.result.tasks);
  for (std::size_t s = 0; s < one.result.memory.stages.size(); ++s) {
    EXPECT_EQ(one.result.memory.stages[s].activations, other.result.memory.stages[s].activations);
    EXPECT_EQ(one.result.memory.stages[s].peak(), other.result.memory.stages[s].peak());
  }
}

// Orders that follow lengths are printed for given ones, and are left out.
TEST(UserSchedule, GivesTheEstimateOfTheScheduleItself) {
  const System system = read_system("four-by-four", test_place);
  int plans = 0;
  for (const Schedule* schedule : built_in_schedules())
    for (int tp : {1, 2})
      for (int pp : {2, 4})
        for (int variant = 0; variant < 4; ++variant) {
          if (schedule->follows_lengths()) continue;
          const int dp = 16 / (tp * pp);
          PlanRequest request = plan_request(tp, pp, 1, 2 * pp * dp, 240,
                                             tp == 2 ? "megatron-2021" : "megatron-core");
          request.schedule = schedule;
          request.zero = variant & 1;
          request.dp_overlap = (variant & 2) != 0;
          const Scenario scenario = scenario_of(dense(), system, request, 16);
          SCOPED_TRACE(schedule->name() + " tp=" + std::to_string(tp) +
                       " pp=" + std::to_string(pp) + " variant=" + std::to_string(variant));
          request.schedule = &user_schedule(
              "file", schedule_text(explicit_order(*schedule, scenario.plan.pipeline(), {}, {})));
          const Scenario again = scenario_of(dense(), system, request, 16);
          expect_same(estimate(scenario), estimate(again));
          ++plans;
        }
  EXPECT_EQ(plans, 7 * 2 * 2 * 4);
}

// Passes in pairs, overlapped with dispatch and combine.
TEST(UserSchedule, GivesTheEstimateOfPairs) {
  const System system = read_system("four-by-four", test_place);
  const Model model = small_mixture(8, 1024, 8, 4096, 8, 2, 1);
  for (const Schedule* schedule : {&interleaved(), &dualpipe()})
    for (int pp : {2, 4}) {
      PlanRequest request = plan_request(1, pp, 1, 4 * pp * (16 / pp), 256, "megatron-core");
      request.schedule = schedule;
      request.ep = 4;
      request.ep_overlap = schedule == &interleaved();
      const Scenario scenario = scenario_of(model, system, request, 16);
      SCOPED_TRACE(schedule->name() + " pp=" + std::to_string(pp));
      EXPECT_TRUE(scenario.plan.ep_overlap);
      request.ep_overlap = false;  // The file has pairs by itself.
      request.schedule = &user_schedule(
          "file", schedule_text(explicit_order(*schedule, scenario.plan.pipeline(), {}, {})));
      const Scenario again = scenario_of(model, system, request, 16);
      EXPECT_TRUE(again.plan.ep_overlap);
      expect_same(estimate(scenario), estimate(again));
    }
}

TEST(UserSchedule, ZeroBubbleVFourWays) {
  for (int per_node : {4, 6}) {
    System system = read_system("four-by-four", test_place);
    system.gpus_per_node = system.nvlink_domain = per_node;
    system.nics_per_node = per_node == 6 ? 3 : system.nics_per_node;
    for (int tp : {1, 2})
      for (int pp : {2, 4})
        for (int variant = 0; variant < 4; ++variant) {
          const int dp = 16 / (tp * pp);
          PlanRequest request = plan_request(tp, pp, 1, 2 * pp * dp, 240, "megatron-core");
          request.schedule = zb_v_schedule(pp, 2 * pp);
          request.zero = variant & 1;
          request.dp_overlap = (variant & 2) != 0;
          const Scenario scenario = scenario_of(dense(), system, request, 16);
          SCOPED_TRACE("tp=" + std::to_string(tp) + " pp=" + std::to_string(pp) +
                       " variant=" + std::to_string(variant));
          const Estimate folded = estimate(scenario);
          EXPECT_EQ(verify(folded.step, scenario.plan), "");
          const double step = folded.result.step_time.si();
          EXPECT_NEAR(folded.result.busiest().sum().si(), step, 1e-9 * step);
          EXPECT_NEAR(folded.result.range.path.total().si(), step, 1e-6 * step);
          for (const Detail detail : {Detail{.unfolded = true}, Detail{.expanded = true},
                                      Detail{.unfolded = true, .expanded = true}})
            EXPECT_NEAR(estimate(scenario, detail).result.step_time.si() / step, 1.0,
                        detail.expanded ? contraction_tolerance : 1e-7);
          EstimateContext context{scenario.system};
          EXPECT_NEAR(step_time(scenario, context).si() / step, 1.0, contraction_tolerance);
        }
  }
}

}  // namespace
}  // namespace orrery::user_schedule_test
