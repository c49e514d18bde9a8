// Three simulations of the same plans: Orrery's own network model, SimGrid's network model beneath
// the same event queue, and for small graphs SimGrid's Exec and Comm activities alone.
//
// SimGrid takes a Comm for arrived when its clock stops less than surf/precision before its end,
// here 1e-11 s: early, if anything else happens so shortly before. What waits for it begins as much
// earlier. Its clock, a double, goes on from run to run. So simulations may differ by 0.01 ns for
// each flow on the path to a task, of which there are up to hundreds; few add up. All tasks of all
// plans are held to 0.5 ns, or 1e-11 of the run.
#include <gtest/gtest.h>

#include "sim/collectives/isolated_collective.hpp"
#include "sim/engine/simgrid_network.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/training/estimate.hpp"
#include "tests/exhaustive/all_plans.hpp"
#include "tests/support/conserved.hpp"
#include "tests/support/fabrics.hpp"

namespace orrery::engines_test {
namespace {

// SimGrid builds its activities before it runs, each in a microsecond or ten.
constexpr int most_oracle_tasks = 2000;

// The difference between two runs of the same tasks.
struct Compared {
  int plans = 0;
  double largest_s = 0.0;
  std::string where;

  void note(Seconds own, Seconds simgrid, Seconds run, const std::string& name) {
    const double apart = std::abs((own - simgrid).si());
    if (apart > largest_s) largest_s = apart, where = name;
    EXPECT_LE(apart, std::max(1e-11 * run.si(), 5e-10))
        << name << ": " << own.si() << " s, on SimGrid " << simgrid.si();
  }
  // Start and end of each task.
  void note(const Timeline& own, const Timeline& simgrid, const std::string& name) {
    ++plans;
    EXPECT_EQ(own.simulator, Simulator::own);
    EXPECT_EQ(simgrid.simulator, Simulator::simgrid);
    ASSERT_EQ(own.spans.size(), simgrid.spans.size());
    const Seconds run = own.makespan.seconds();
    note(run, simgrid.makespan.seconds(), run, name);
    for (std::size_t i = 0; i < own.spans.size(); ++i) {
      const std::string task = name + " task " + std::to_string(i);
      note(own.spans[i].start.seconds(), simgrid.spans[i].start.seconds(), run, task);
      note(own.spans[i].finish.seconds(), simgrid.spans[i].finish.seconds(), run, task);
    }
  }
  void record() const {
    ::testing::Test::RecordProperty("plans", plans);
    ::testing::Test::RecordProperty("largest", std::to_string(1e9 * largest_s) + " ns, " + where);
  }
};

void compare(const Scenario& scenario, EstimateContext& context, Detail detail,
             const std::string& name, Compared& compared) {
  SCOPED_TRACE(name);
  const Estimate own = estimate(scenario, context, detail);
  const Estimate other = [&] {
    const SimulatorChoice simgrid{Simulator::simgrid};
    return estimate(scenario, context, detail);
  }();
  EXPECT_EQ(other.result.simulator, Simulator::simgrid);
  expect_time_conserved(own.result);
  expect_time_conserved(other.result);
  compared.note(own.timeline, other.timeline, name);
  if (own.step.graph.size() <= most_oracle_tasks)
    compared.note(own.timeline, simgrid_timeline(own.step.graph, own.topology), name + " oracle");
}

struct Fabric {
  const char* name;
  System system;
};
std::vector<Fabric> fabrics() {
  System shared = read_system("four-by-four", test_place);
  shared.nics_per_node = 2;
  System pcie = read_system("four-by-four", test_place);
  pcie.wiring = NodeWiring::pcie;
  return {
      {"single_switch", read_system("four-by-four", test_place)},
      {"nics_shared", shared},
      {"pcie", pcie},
      {"leaf_spine_2to1", leaf_spine(2, 2, 2e9)},
      {"rail_optimized", rail_optimized(2, 2, 1e9)},
      {"fat_tree", fat_tree(1, 2, 2, 2, 2e9, 2e9)},
      {"dragonfly", dragonfly(1, 2, 2, 1, 4e9, 2e9)},
      {"ring_of_switches", ring_of_switches(4, 4e9)},
  };
}

class Engines : public ::testing::TestWithParam<Fabric> {};
INSTANTIATE_TEST_SUITE_P(All, Engines, ::testing::ValuesIn(fabrics()),
                         [](const auto& fabric) { return std::string{fabric.param.name}; });

// Degrees, ZeRO, overlap, sequence parallelism, virtual stages; each pass as one task or expanded.
TEST_P(Engines, AgreeOnEveryDensePlan) {
  const System& system = GetParam().system;
  EstimateContext context{system};
  Compared compared;
  for_each_plan(small_gpt(4, 256, 16, 2048), system, 16, [&](const Scenario& scenario) {
    compare(scenario, context, {}, describe(scenario), compared);
    compare(scenario, context, {.expanded = true}, describe(scenario) + " expanded", compared);
  });
  compared.record();
  EXPECT_GE(compared.plans, 2 * 176);
}

// Every schedule, also of every rank, whose flows are many.
TEST_P(Engines, AgreeOnEverySchedule) {
  const System& system = GetParam().system;
  EstimateContext context{system};
  Compared compared;
  for (const Schedule* schedule : built_in_schedules())
    for (int tp : {1, 2})
      for (int pp : {2, 4})
        for (bool overlap : {false, true}) {
          PlanRequest request =
              plan_request(tp, pp, 1, 2 * pp * (16 / (tp * pp)), 240, "megatron-core");
          request.schedule = schedule;
          request.zero = overlap ? 1 : 0;
          request.dp_overlap = overlap;
          const Scenario scenario = scenario_of(small_gpt(8, 256, 8, 2048), system, request, 16);
          const std::string name = schedule->name() + " " + describe(scenario);
          compare(scenario, context, {}, name, compared);
          compare(scenario, context, {.unfolded = true, .expanded = true}, name + " whole",
                  compared);
        }
  compared.record();
  EXPECT_GE(compared.plans, static_cast<int>(built_in_schedules().size()) * 2 * 2 * 2 * 2);
}

// Experts, evenly routed and not.
TEST_P(Engines, AgreeOnExperts) {
  const System& system = GetParam().system;
  EstimateContext context{system};
  Compared compared;
  for (const char* routing : {"uniform", "zipf:1", "hot:0.9"})
    for (int tp : {1, 2})
      for (int pp : {1, 2})
        for (int ep : {2, 4})
          for (bool overlap : {false, true}) {
            PlanRequest request =
                plan_request(tp, pp, 1, 2 * pp * (8 / (tp * pp)), 128, "megatron-core");
            request.ep = ep;
            request.routing = routing;
            request.dp_overlap = overlap;
            request.zero = overlap ? 1 : 0;
            const Scenario scenario =
                scenario_of(small_mixture(2, 256, 8, 1024, 8, 2), system, request, 8);
            const std::string name =
                std::string{routing} + " ep=" + std::to_string(ep) + " " + describe(scenario);
            compare(scenario, context, {}, name, compared);
            compare(scenario, context, {.unfolded = true}, name + " unfolded", compared);
            compare(scenario, context, {.expanded = true}, name + " expanded", compared);
          }
  compared.record();
  EXPECT_GE(compared.plans, 3 * 2 * 2 * 2 * 2 * 3);
}

// Weights and gradients in shards.
TEST_P(Engines, AgreeOnShards) {
  const System& system = GetParam().system;
  EstimateContext context{system};
  Compared compared;
  for (int tp : {1, 2})
    for (int pp : {1, 2})
      for (int zero : {2, 3})
        for (bool overlap : {false, true}) {
          PlanRequest request =
              plan_request(tp, pp, 1, 2 * pp * (16 / (tp * pp)), 240, "megatron-core");
          request.zero = zero;
          request.dp_overlap = overlap;
          const Scenario scenario = scenario_of(small_gpt(4, 256, 8, 2048), system, request, 16);
          compare(scenario, context, {}, describe(scenario), compared);
        }
  compared.record();
  EXPECT_GE(compared.plans, 2 * 2 * 2 * 2);
}

// Passes as fused tasks, which are skipped over while their links are idle, and with SimGrid
// simulated phase by phase.
TEST(EnginesOnFusedTasks, AgreeOnEveryPlan) {
  Compared compared;
  int chained = 0;
  for (int in_node : {4, 2}) {
    System system = read_system("four-by-four", test_place);
    system.gpus_per_node = system.nvlink_domain = system.nics_per_node = in_node;
    EstimateContext context{system};
    for_each_plan(small_gpt(8, 256, 8, 2048), system, 8, [&](const Scenario& scenario) {
      const Layout& layout = context.layout(Placement{scenario.plan, scenario.system});
      const Topology& topology = context.topology(scenario.plan.gpus());
      const auto cost = std::make_shared<const StepCost>(
          price_step(scenario, context.kernels(scenario.plan.dtype),
                     context.collectives(scenario.plan), layout.shapes));
      Contraction fused{false};
      fused.fused = true;
      const TrainingStep step = build_training_step(
          scenario, cost, StepTraffic{scenario, context.collectives(scenario.plan), layout.shapes},
          layout.classes, topology, fused);
      for (const Task& task : step.graph.tasks()) chained += task.fused ? 1 : 0;
      const Timeline own = execute(step.graph, topology);
      const Timeline other = execute(step.graph, topology, Simulator::simgrid);
      compared.note(own, other, describe(scenario));
    });
  }
  compared.record();
  EXPECT_GT(compared.plans, 150);
  EXPECT_GT(chained, 1000);
}

// One collective alone: up to thousands of flows at once.
TEST(EnginesOnCollectives, Agree) {
  Compared compared;
  for (const char* name : {"dgx-h100", "dgx-1-v100-cube-mesh", "rtx-pro-6000-pcie",
                           "hgx-h100-leaf-spine-2to1", "hgx-h100-dragonfly"}) {
    const System system = read_system(name, test_place);
    for (const auto& [kind, word, nccl_name, passes, reduces, rooted] : collective_facts)
      for (int nodes : {1, 2, 4})
        for (double bytes : {8.0, 1e6, 1e9})
          for (bool unfolded : {false, true}) {
            const int ranks = nodes * system.gpus_per_node;
            if (system.max_gpus > 0 && ranks > system.max_gpus) continue;
            const IsolatedCollective collective{kind, ranks, nodes, Bytes{bytes}};
            const auto own = run_alone(collective, system, {}, unfolded);
            const SimulatorChoice simgrid{Simulator::simgrid};
            const auto other = run_alone(collective, system, {}, unfolded);
            ++compared.plans;
            compared.note(own.time, other.time, own.time,
                          std::string{name} + " nodes " + std::to_string(nodes) + " bytes " +
                              std::to_string(bytes) + (unfolded ? " unfolded" : ""));
          }
  }
  compared.record();
  EXPECT_GT(compared.plans, 350);
}

}  // namespace
}  // namespace orrery::engines_test
