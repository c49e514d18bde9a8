// Systems in which not all ranks see the same picture: every small plan, folded by refinement of
// ranks, flows and links, against every rank simulated.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "sim/estimate/estimate.hpp"
#include "sim/graph/refinement.hpp"
#include "sim/graph/verify.hpp"
#include "tests/exhaustive/all_plans.hpp"

namespace orrery {
namespace {

// Four nodes of two GPUs: 10 GB/s inside, a NIC of 1 GB/s each.
System four_by_two() {
  System system = read_system("four-by-four", test_place);
  system.gpus_per_node = system.nvlink_domain = system.nics_per_node = 2;
  return system;
}

// Two nodes a leaf, two spines; a leaf's four NICs share two uplinks of one NIC's rate: 2:1.
System oversubscribed() {
  System system = four_by_two();
  system.shape.layout = FabricLayout::leaf_spine;
  system.shape.nodes_per_leaf = 2;
  system.shape.spines = 2;
  system.shape.uplink = system.nic;
  return system;
}

System with_straggler() {
  System system = four_by_two();
  system.gpu_overrides.push_back({1, 0, 0.5});
  return system;
}

System with_slow_nic() {
  System system = four_by_two();
  LinkOverride slow;
  slow.link = "node1.nic0";
  slow.bandwidth = 0.5 * system.nic;
  system.link_overrides.push_back(slow);
  return system;
}

System with_spine_down() {
  System system = oversubscribed();
  LinkOverride down;
  down.link = "leaf0-spine0";
  down.down = true;
  system.link_overrides.push_back(down);
  return system;
}

struct Found {
  int plans = 0;
  double largest = 0.0;
  std::string where;
};

Found compare(const System& system) {
  Found found;
  const Model model = small_gpt(8, 256, 8, 2048);
  found.plans = for_each_plan(model, system, 8, [&](const Scenario& scenario) {
    SCOPED_TRACE(describe(scenario));
    const Estimate folded = estimate(scenario, {});
    const Estimate unfolded = estimate(scenario, {.unfolded = true, .expanded = false});
    EXPECT_EQ(verify(folded.step, scenario.plan), "");
    EXPECT_EQ(verify(unfolded.step, scenario.plan), "");
    const double difference = std::abs(folded.result.step_time / unfolded.result.step_time - 1.0);
    if (difference > found.largest) found.largest = difference, found.where = describe(scenario);
    EXPECT_NEAR(folded.result.breakdown.sum().si(), folded.result.step_time.si(),
                1e-9 * folded.result.step_time.si());
  });
  ::testing::Test::RecordProperty("largest difference",
                                  std::to_string(found.largest) + " at " + found.where);
  return found;
}

class OddSystem : public ::testing::TestWithParam<std::pair<const char*, System (*)()>> {};

TEST_P(OddSystem, FoldedTellsTheTimeOfUnfolded) {
  const Found found = compare(GetParam().second());
  EXPECT_GT(found.plans, 50);
  EXPECT_LT(found.largest, 1e-3) << found.where;
}

INSTANTIATE_TEST_SUITE_P(All, OddSystem,
                         ::testing::Values(std::pair{"straggler", &with_straggler},
                                           std::pair{"slow_nic", &with_slow_nic},
                                           std::pair{"oversubscribed", &oversubscribed},
                                           std::pair{"spine_down", &with_spine_down}),
                         [](const auto& system) { return std::string{system.param.first}; });

// GPT-3 175B on 1,024 GPUs with one of them at half speed: who waits for it is told apart, and
// nobody else. Stages 8; in each stage its replica's ranks, its data-parallel peers, both, neither.
TEST(Straggler, SplitsOnlyWhomItTouches) {
  System system = read_system("dgx-a100-80gb", test_place);
  system.gpu_overrides.push_back({5, 3, 0.5});
  PlanRequest request = plan_request(8, 8, 1, 16 * 16, 2048, "megatron-2021");
  request.recompute = Recompute::full;
  const Model model = read_model("gpt3-175b", test_place);
  const Estimate slowed = estimate(scenario_of(model, system, request, 1024));
  EXPECT_LE(slowed.result.roles, 8 * 4);
  EXPECT_GT(slowed.result.roles, 8);

  system.gpu_overrides.clear();
  const Estimate whole = estimate(scenario_of(model, system, request, 1024));
  EXPECT_EQ(whole.result.roles, 8);
  // Its stage takes up to twice as long for each of 16 micro-batches, the others as long as before.
  const double ratio = slowed.result.step_time / whole.result.step_time;
  EXPECT_GT(ratio, 1.3);
  EXPECT_LT(ratio, 2.0);
}

// Beyond 48 roles the order of a straggler's rings is left out: nothing may change but the work.
TEST(Straggler, WithoutTheOrderOfItsRingsTheStepIsTheSame) {
  System system = read_system("dgx-a100-80gb", test_place);
  system.gpu_overrides.push_back({5, 3, 0.5});
  const Model model = small_gpt(16, 1024, 16, 2048);
  for (const bool overlap : {false, true})
    for (const auto& [tp, pp] : {std::pair{8, 2}, {4, 4}, {2, 2}, {1, 4}}) {
      PlanRequest request = plan_request(tp, pp, 1, 4 * 128 / (tp * pp), 1024, "megatron-core");
      request.dp_overlap = overlap;
      const Scenario scenario = scenario_of(model, system, request, 128);
      SCOPED_TRACE(describe(scenario));
      const Estimate folded = estimate(scenario);
      const Estimate unfolded = estimate(scenario, {.unfolded = true, .expanded = false});
      EXPECT_LT(folded.result.roles, 48);
      EXPECT_EQ(unfolded.result.roles, 128);
      EXPECT_NEAR(folded.result.step_time / unfolded.result.step_time, 1.0, 1e-3);
    }
}

// On a uniform system refinement finds what the recipe knows: one role a stage, and the same ways.
TEST(Refinement, FindsTheRecipeOfRegularPlacements) {
  const System system = read_system("four-by-four", test_place);
  const Model model = small_gpt(8, 256, 8, 2048);
  int compared = 0;
  for_each_plan(model, system, 16, [&](const Scenario& scenario) {
    const Placement placement{scenario.plan, scenario.system};
    if (!placement.regular()) return;
    const Topology topology = Topology::build(system, 16);
    const std::vector<double> speeds(16, 1.0);
    const Refinement refinement = refine(placement, topology, speeds);
    const std::set<int> roles(refinement.role_of_rank.begin(), refinement.role_of_rank.end());
    EXPECT_EQ(static_cast<int>(roles.size()), scenario.plan.pp) << describe(scenario);
    for (int r = 0; r < 16; ++r)
      EXPECT_EQ(refinement.role_of_rank[static_cast<std::size_t>(r)],
                placement.coordinates(Rank{r}).stage);
    ++compared;
  });
  EXPECT_GT(compared, 50);
}

}  // namespace
}  // namespace orrery
