// Every small plan with sharded gradients and weights, four ways, as folding_test does without.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/core/error.hpp"
#include "sim/training/estimate.hpp"
#include "sim/training/training_step.hpp"
#include "tests/support/placements.hpp"

namespace orrery::shards_test {
namespace {

struct Found {
  int plans = 0;
  double folding = 0.0;
  double contraction = 0.0;
  std::string where;
};

void compare(const Scenario& scenario, Found& found) {
  const Plan& plan = scenario.plan;
  const std::string name = "tp=" + std::to_string(plan.tp) + " cp=" + std::to_string(plan.cp) +
                           " pp=" + std::to_string(plan.pp) + " zero=" + std::to_string(plan.zero) +
                           " copies=" + std::to_string(plan.dp_replicate) +
                           (plan.reshard ? " reshard" : "") + (plan.dp_overlap ? " overlap" : "");
  SCOPED_TRACE(name);
  const Estimate folded = estimate(scenario);
  const Estimate unfolded = estimate(scenario, {.unfolded = true});
  const Estimate expanded = estimate(scenario, {.expanded = true});
  const Estimate whole = estimate(scenario, {.unfolded = true, .expanded = true});
  for (const Estimate* each : {&folded, &unfolded, &expanded, &whole}) {
    EXPECT_EQ(verify(each->step, plan), "");
    const double step = each->result.step_time.si();
    EXPECT_NEAR(each->result.busiest().sum().si(), step, 1e-9 * step);
  }
  const auto off = [](const Estimate& a, const Estimate& b) {
    return std::abs(a.result.step_time / b.result.step_time - 1.0);
  };
  const double folding = std::max(off(folded, unfolded), off(expanded, whole));
  if (folding > found.folding) found.folding = folding, found.where = name;
  found.contraction = std::max(found.contraction, off(unfolded, whole));
  ++found.plans;
}

// tp 1 and 2, pp 1 and 2, cp 1 and 2 on `gpus`; ZeRO-2, and ZeRO-3 with and without resharding;
// overlapped or not. Three micro-batches a stage.
Found compare_plans(const System& system, int gpus) {
  const Model model = small_gpt(6, 1536, 12, 4096);
  Found found;
  for (int degrees = 0; degrees < 8; ++degrees) {
    const int tp = degrees & 1 ? 2 : 1, pp = degrees & 2 ? 2 : 1, cp = degrees & 4 ? 2 : 1;
    if (gpus % (tp * pp * cp) != 0) continue;
    for (int variant = 0; variant < 6; ++variant) {
      PlanRequest request =
          plan_request(tp, pp, 1, 3 * pp * gpus / (tp * pp * cp), 240, "megatron-core");
      request.cp = cp;
      request.zero = variant / 2 == 0 ? 2 : 3;
      if (*request.zero == 3) request.reshard = variant / 2 == 2;
      request.dp_overlap = variant % 2 == 1;
      compare(scenario_of(model, system, request, gpus), found);
    }
  }
  return found;
}

// The same with two and four copies of the shards, and ZeRO-1, of what leaves two shards or more.
Found compare_copies(const System& system, int gpus) {
  const Model model = small_gpt(6, 1536, 12, 4096);
  Found found;
  for (int tp : {1, 2})
    for (int pp : {1, 2})
      for (int copies : {2, 4})
        for (int zero : {1, 2, 3})
          for (bool overlap : {false, true}) {
            const int dp = gpus / (tp * pp);
            if (dp % copies != 0 || dp == copies) continue;
            PlanRequest request = plan_request(tp, pp, 1, 3 * pp * dp, 240, "megatron-core");
            request.zero = zero;
            request.dp_replicate = copies;
            request.dp_overlap = overlap;
            compare(scenario_of(model, system, request, gpus), found);
          }
  return found;
}

void expect_exact(const Found& found, int plans) {
  ::testing::Test::RecordProperty("folded_against_unfolded", std::to_string(found.folding));
  EXPECT_EQ(found.plans, plans);
  EXPECT_LT(found.folding, 1e-7) << found.where;
  EXPECT_LT(found.contraction, 1e-3);
}

TEST(ShardedPlans, EightGpusInFourNodes) { expect_exact(compare_plans(nodes_of(2, 2), 8), 48); }

TEST(ShardedPlans, EightGpusTwoToANic) { expect_exact(compare_plans(nodes_of(4, 2), 8), 48); }

TEST(ShardedPlans, EightGpusInNodesOfThree) { expect_exact(compare_plans(nodes_of(3, 3), 8), 48); }

// Of dp 8 two and four copies, of dp 4 two: 2 + 2 x 1, by ZeRO and overlap.
constexpr int all_copies = (2 + 2) * 3 * 2;
TEST(CopiesOfShards, EightGpusInFourNodes) {
  expect_exact(compare_copies(nodes_of(2, 2), 8), all_copies);
}
TEST(CopiesOfShards, EightGpusInNodesOfFour) {
  expect_exact(compare_copies(nodes_of(4, 2), 8), all_copies);
}
TEST(CopiesOfShards, EightGpusInNodesOfThree) {
  expect_exact(compare_copies(nodes_of(3, 3), 8), all_copies);
}

TEST(ShardedPlans, AStraggler) {
  System system = nodes_of(2, 2);
  system.gpu_overrides.push_back({1, 0, 0.5});
  expect_exact(compare_plans(system, 8), 48);
}

}  // namespace
}  // namespace orrery::shards_test
