#include "sim/search/best_plan.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "sim/search/search.hpp"
#include "tests/support/scenarios.hpp"

namespace orrery::best_plan_test {
namespace {

System small_cluster() { return read_system("four-by-four", test_place); }

System uneven_cluster() {
  System system = small_cluster();
  system.gpus_per_node = system.nvlink_domain = system.nics_per_node = 3;
  return system;
}

// Choices of all plans, by visit() and by groups.
void expect_groups_are_all_plans(const PlanSpace& space) {
  std::multiset<PlanSpace::Choice> all, grouped;
  std::set<PlanSpace::Choice> groups;
  PlanRefusal unused;
  for (int part = 0; part < space.parts(); ++part) {
    space.visit(
        part,
        [&](const PlanSpace::Choice& choice, const Scenario&) {
          all.insert(choice);
          return true;
        },
        unused);
    space.visit_groups(
        part,
        [&](const PlanSpace::Choice& group, const Scenario&) {
          EXPECT_TRUE(groups.insert(group).second) << "twice: " << space.flags(group);
          PlanRefusal ignored;
          space.visit_group(
              group,
              [&](const PlanSpace::Choice& choice, const Scenario& scenario) {
                EXPECT_EQ(space.scenario(choice).plan, scenario.plan);
                grouped.insert(choice);
                return true;
              },
              ignored);
          return true;
        },
        unused);
  }
  EXPECT_GT(all.size(), 100u);
  EXPECT_LT(groups.size(), all.size());
  EXPECT_EQ(grouped, all);
}

TEST(PlanGroups, HoldEveryPlanOnce) {
  const Model dense = small_gpt(8, 256, 8, 2048);
  expect_groups_are_all_plans({dense, small_cluster(), 16, 32, {}});
  expect_groups_are_all_plans({dense, small_cluster(), 16, 32, {{"zero", {"1", "3"}}}});
  expect_groups_are_all_plans({dense, small_cluster(), 8, 16, {{"dtype", {"bf16", "fp16"}}}});
  expect_groups_are_all_plans(
      {small_mixture(4, 256, 8, 2048, 8, 2), small_cluster(), 8, 16, {{"cp", {"1"}}}});
}

// What is priced once for many plans is what each of them costs by itself, to the last bit, also
// between sizes of a cluster.
void expect_known_times(const Model& model, const System& system, const std::vector<int>& sizes,
                        const std::vector<Fixed>& fixed) {
  EstimateContext context{system};
  KnownPassTimes known{context};
  int plans = 0;
  for (const int gpus : sizes) {
    const PlanSpace space{model, system, gpus, 2 * gpus, fixed};
    PlanRefusal unused;
    for (int part = 0; part < space.parts(); ++part)
      space.visit(
          part,
          [&](const PlanSpace::Choice& choice, const Scenario& scenario) {
            Scenario priced = scenario;
            priced.plan.zero = 0;
            const PassTimes alone = pass_times(priced, context.kernels(scenario.plan.dtype),
                                               context.collectives(scenario.plan));
            const PassTimes& shared = known.of(scenario);
            EXPECT_EQ(shared.forward, alone.forward) << space.flags(choice);
            EXPECT_EQ(shared.backward, alone.backward) << space.flags(choice);
            EXPECT_EQ(shared.optimizer, alone.optimizer) << space.flags(choice);
            EXPECT_EQ(shared.transfer_bytes, alone.transfer_bytes) << space.flags(choice);
            ++plans;
            return true;
          },
          unused);
  }
  EXPECT_GT(plans, 500);
}

TEST(KnownPassTimes, AreThoseOfEachPlan) {
  const Model dense = small_gpt(8, 256, 8, 2048);
  expect_known_times(dense, small_cluster(), {8, 16}, {{"mbs", {"1", "2"}}});
  expect_known_times(dense, uneven_cluster(), {6, 12}, {{"mbs", {"1"}}});
  expect_known_times(small_mixture(4, 256, 8, 2048, 8, 2), small_cluster(), {8, 16},
                     {{"mbs", {"1"}}, {"cp", {"1"}}});
  System throttled = small_cluster();
  throttled.gpu_overrides.push_back({0, 1, 0.5});
  expect_known_times(dense, throttled, {8}, {{"mbs", {"1", "2"}}});
}

// The plan that search() lists first, for the batches together.
void expect_same_as_search(const Model& model, const System& system, int gpus,
                           const std::vector<std::int64_t>& batches, double most_memory,
                           const std::vector<Fixed>& fixed = {}) {
  SearchRequest request;
  request.model = model;
  request.systems = {system};
  request.gpus = {gpus};
  request.gbs = batches;
  request.fixed = fixed;
  request.goal = Goal::training_time;
  request.max_memory = most_memory;
  request.list.most = 1;
  const SearchResult searched = search(request);
  ASSERT_EQ(searched.plans.size(), 1u);

  std::vector<PlanSpace> spaces;
  spaces.reserve(batches.size());
  std::vector<const PlanSpace*> pointers;
  for (const std::int64_t batch : batches)
    pointers.push_back(&spaces.emplace_back(model, system, gpus, batch, fixed));
  EstimateContext context{system};
  KnownPassTimes passes{context};
  const Objective objective{Goal::training_time, {}};
  BestPlanFinder finder{pointers, {objective, nullptr, context, passes}};
  const BestPlanSearch found = finder.find(most_memory);
  ASSERT_TRUE(found.best);
  const PlanSpace& space = spaces[static_cast<std::size_t>(found.best->space)];
  EXPECT_EQ(space.flags(found.best->choice), searched.plans.front().flags);
  EXPECT_EQ(space.gbs(), searched.plans.front().result.scenario.plan.gbs);
  EXPECT_DOUBLE_EQ(found.best->score, searched.plans.front().score);
  EXPECT_LT(found.opened, found.groups);
  // Memory can only stand in the way.
  const BestPlanSearch all_fit = finder.find(std::numeric_limits<double>::infinity());
  EXPECT_LE(all_fit.best->score, found.best->score * (1.0 + 1e-12));
}

TEST(BestPlanFinder, FindsWhatASearchLists) {
  const Model dense = small_gpt(8, 256, 8, 2048);
  const std::vector<Fixed> none;
  for (const int gpus : {4, 8, 16})
    for (const std::vector<std::int64_t>& batches : {std::vector<std::int64_t>{32}, {16, 32}, {48}})
      expect_same_as_search(dense, small_cluster(), gpus, batches, 0.95);
  expect_same_as_search(dense, uneven_cluster(), 6, {12, 24}, 0.95);
  expect_same_as_search(small_mixture(4, 256, 8, 2048, 8, 2), small_cluster(), 8, {16}, 0.95);
}

TEST(BestPlanFinder, KeepsToTheMemory) {
  const Model model = read_model("llama3-8b", test_place);
  const System system = read_system("dgx-a100-40gb", test_place);
  for (const double share : {0.5, 0.7, 0.95})
    expect_same_as_search(model, system, 16, {32}, share, {{"cp", {"1"}}});
}

TEST(BestPlanFinder, SaysWhyThereIsNone) {
  const Model model = read_model("llama3-70b", test_place);
  const System system = read_system("dgx-h100", test_place);
  EstimateContext context{system};
  KnownPassTimes passes{context};
  const Objective objective{Goal::training_time, {}};
  const PlanSpace tight{model, system, 8, 8, {{"cp", {"1"}}}};
  const BestPlanSearch full =
      BestPlanFinder{{&tight}, {objective, nullptr, context, passes}}.find(0.95);
  EXPECT_FALSE(full.best);
  EXPECT_GT(full.none.least_memory, system.gpu.memory.si());
  EXPECT_NE(full.none.smallest, "");
  const PlanSpace odd{model, system, 8, 8, {{"tp", {"7"}}}};
  const BestPlanSearch none =
      BestPlanFinder{{&odd}, {objective, nullptr, context, passes}}.find(0.95);
  EXPECT_FALSE(none.best);
  EXPECT_EQ(none.groups, 0);
  EXPECT_NE(none.none.refusal.reason, "");
}

TEST(BestPlanFinder, LeavesUnevenPlansOutOnRequest) {
  const Model model = small_gpt(8, 256, 8, 2048);
  const System system = uneven_cluster();
  EstimateContext context{system};
  KnownPassTimes passes{context};
  const Objective objective{Goal::training_time, {}};
  const PlanSpace space{model, system, 12, 24, {}};
  BestPlanFinder all{{&space}, {objective, nullptr, context, passes}};
  BestPlanFinder even{{&space}, {objective, nullptr, context, passes}, Evenness::all_groups};
  const BestPlanSearch of_all = all.find(0.95), of_even = even.find(0.95);
  EXPECT_GT(of_even.uneven, 0);
  EXPECT_EQ(of_even.groups + of_even.uneven, of_all.groups);
  // Two ranks of a tensor group lie in domains of three unevenly.
  EXPECT_EQ(passes.evenness(space.scenario(of_even.best->choice)), Evenness::all_groups);
}

}  // namespace
}  // namespace orrery::best_plan_test
