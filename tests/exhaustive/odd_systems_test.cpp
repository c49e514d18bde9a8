// Systems in which not all ranks see the same picture: every small plan, folded by refinement of
// ranks, flows and links, against every rank simulated.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "sim/plan/refinement.hpp"
#include "sim/training/estimate.hpp"
#include "sim/training/training_step.hpp"
#include "tests/exhaustive/all_plans.hpp"
#include "tests/support/fabrics.hpp"

namespace orrery::odd_systems_test {
namespace {

// Four nodes of four GPUs: 10 GB/s inside, a NIC of 1 GB/s each, and every kind of fabric.
struct Fabric {
  const char* name;
  System system;
  std::string link;  // A cable between two switches; without it there is another route.
};

std::vector<Fabric> fabrics() {
  return {
      {"single_switch", read_system("four-by-four", test_place), ""},
      {"leaf_spine_2to1", leaf_spine(2, 2, 2e9), "leaf0-spine0"},
      {"rail_optimized", rail_optimized(2, 2, 1e9), "leaf1-spine0"},
      {"fat_tree", fat_tree(1, 2, 2, 2, 2e9, 2e9), "leaf2-spine3"},
      {"dragonfly", dragonfly(1, 2, 2, 1, 4e9, 2e9), "router0-router2"},
      {"ring_of_switches", ring_of_switches(4, 4e9), "s1-s2"},
  };
}

System with_straggler(System system) {
  system.gpu_overrides.push_back({1, 2, 0.5});
  return system;
}

System with_slow_nic(System system) {
  LinkOverride slow;
  slow.link = "node1.nic2";
  slow.bandwidth = 0.5 * system.nic;
  system.link_overrides.push_back(slow);
  return system;
}

struct Found {
  int plans = 0;
  int reps = 0;
  double largest = 0.0;
  std::string where;
};

// The largest load of a link of each class: the same whether equivalent ranks are simulated or not.
void expect_same_links(const Result& folded, const Result& unfolded) {
  const auto by_class = [](const Result& result) {
    std::map<std::string, double> bytes;
    for (const LinkReport& link : result.links) {
      Bytes sum;
      for (const Bytes part : link.by_user) sum += part;
      EXPECT_EQ(sum, link.bytes);
      EXPECT_LE(link.busy_fraction, 1.0 + 1e-6) << link.name;
      bytes[link.kind] = link.bytes.si();
    }
    return bytes;
  };
  const auto of_folded = by_class(folded);
  const auto of_unfolded = by_class(unfolded);
  ASSERT_EQ(of_folded.size(), of_unfolded.size());
  for (const auto& [kind, bytes] : of_unfolded) {
    ASSERT_TRUE(of_folded.contains(kind)) << kind;
    EXPECT_NEAR(of_folded.at(kind), bytes, 1e-9 * bytes) << kind;
  }
}

Found compare(const System& system) {
  Found found;
  const Model model = small_gpt(4, 256, 16, 2048);
  found.plans = for_each_plan(model, system, 16, [&](const Scenario& scenario) {
    SCOPED_TRACE(describe(scenario));
    const Estimate folded = estimate(scenario, {});
    const Estimate unfolded = estimate(scenario, {.unfolded = true, .expanded = false});
    EXPECT_EQ(verify(folded.step, scenario.plan), "");
    EXPECT_EQ(verify(unfolded.step, scenario.plan), "");
    expect_same_links(folded.result, unfolded.result);
    found.reps += folded.result.reps;
    const double difference = std::abs(folded.result.step_time / unfolded.result.step_time - 1.0);
    if (difference > found.largest) found.largest = difference, found.where = describe(scenario);
    EXPECT_NEAR(folded.result.busiest().sum().si(), folded.result.step_time.si(),
                1e-9 * folded.result.step_time.si());
  });
  ::testing::Test::RecordProperty("largest difference",
                                  std::to_string(found.largest) + " at " + found.where);
  ::testing::Test::RecordProperty("mean roles of 16",
                                  std::to_string(1.0 * found.reps / found.plans));
  return found;
}

class OddSystem : public ::testing::TestWithParam<Fabric> {};

TEST_P(OddSystem, FoldedGivesTheTimeOfUnfolded) {
  const System& healthy = GetParam().system;
  std::vector<std::pair<std::string, System>> systems{{"whole", healthy},
                                                      {"straggler", with_straggler(healthy)},
                                                      {"slow NIC", with_slow_nic(healthy)}};
  if (!GetParam().link.empty())
    systems.emplace_back("link down", with_down(healthy, GetParam().link));
  for (const auto& [name, system] : systems) {
    SCOPED_TRACE(name);
    const Found found = compare(system);
    EXPECT_EQ(found.plans, 176);
    EXPECT_LT(found.largest, 1e-6) << found.where;
  }
}

INSTANTIATE_TEST_SUITE_P(All, OddSystem, ::testing::ValuesIn(fabrics()),
                         [](const auto& fabric) { return std::string{fabric.param.name}; });

// GPT-3 175B on 1,024 GPUs, one of them at half speed: refinement separates the ranks that wait for
// it, and no others. Stages 8; in each its replica's ranks, its data-parallel peers, both, neither.
TEST(Straggler, SplitsOnlyWhomItTouches) {
  System system = read_system("dgx-a100-80gb", test_place);
  system.gpu_overrides.push_back({5, 3, 0.5});
  PlanRequest request = plan_request(8, 8, 1, 16 * 16, 2048, "megatron-2021");
  request.recompute = Recompute::full;
  const Model model = read_model("gpt3-175b", test_place);
  const Estimate slowed = estimate(scenario_of(model, system, request, 1024));
  EXPECT_LE(slowed.result.reps, 8 * 4);
  EXPECT_GT(slowed.result.reps, 8);

  system.gpu_overrides.clear();
  const Estimate whole = estimate(scenario_of(model, system, request, 1024));
  EXPECT_EQ(whole.result.reps, 8);
  // Its stage takes up to twice as long for each of 16 micro-batches, the others as long as before.
  const double ratio = slowed.result.step_time / whole.result.step_time;
  EXPECT_GT(ratio, 1.3);
  EXPECT_LT(ratio, 2.0);
}

// Beyond 48 classes a rank's distance on a ring from the straggler is given up.
TEST(Straggler, BeyondSomeClassesItsPlaceOnARingDoesNotCount) {
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
      EXPECT_LT(folded.result.reps, 48);
      EXPECT_EQ(unfolded.result.reps, 128);
      EXPECT_NEAR(folded.result.step_time / unfolded.result.step_time, 1.0, 1e-3);
    }
}

// On a uniform system refinement agrees with the recipe: one class a stage, and the same routes.
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
    const std::set<int> reps(refinement.rep_of_rank.begin(), refinement.rep_of_rank.end());
    EXPECT_EQ(static_cast<int>(reps.size()), scenario.plan.pp) << describe(scenario);
    for (int r = 0; r < 16; ++r)
      EXPECT_EQ(refinement.rep_of_rank[static_cast<std::size_t>(r)],
                placement.coordinates(Rank{r}).stage);
    ++compared;
  });
  EXPECT_GT(compared, 50);
}

// In PCIe nodes what stays inside and what leaves passes the same slot of a GPU: of one group, as
// that of context ranks 0, 4, 8 and 12, or of two, as tensor ranks inside and context ranks 0 and
// 8.
TEST(OddSystems, GroupsInsideAndBetweenPcieNodes) {
  const System system = read_system("l40s-pcie", test_place);
  const Model model = small_gpt(4, 256, 16, 2048);
  for (const auto& [tp, cp] : {std::pair{4, 4}, {2, 8}, {8, 2}, {16, 1}, {1, 16}, {4, 2}, {2, 4}})
    for (const ContextExchange exchange : {ContextExchange::p2p, ContextExchange::all_gather}) {
      PlanRequest request;
      request.tp = tp;
      request.cp = cp;
      request.gbs = 32;
      request.seq = 512;
      request.cp_comm = exchange;
      const Scenario scenario = scenario_of(model, system, request, 16);
      SCOPED_TRACE("tp " + std::to_string(tp) + " cp " + std::to_string(cp) + " " + name(exchange));
      const Seconds folded = estimate(scenario).result.step_time;
      const Seconds detailed =
          estimate(scenario, {.unfolded = true, .expanded = true}).result.step_time;
      EXPECT_NEAR(folded / detailed, 1.0, 1e-3);
      EstimateContext context{system};
      EXPECT_NEAR(step_time(scenario, context) / detailed, 1.0, 1e-3);
    }
}

}  // namespace
}  // namespace orrery::odd_systems_test
