// Every small plan on every small cluster in four modes: one rank a class or every rank, passes
// coalesced or expanded collective by collective. All four must give the same time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "sim/engine/simulation.hpp"
#include "sim/engine/task_graph.hpp"
#include "sim/training/contraction.hpp"
#include "sim/training/estimate.hpp"
#include "sim/training/training_step.hpp"
#include "tests/exhaustive/all_plans.hpp"
#include "tests/support/placements.hpp"

namespace orrery::folding_test {
namespace {

// The largest of many differences, and where it was.
class Largest {
 public:
  void note(Seconds found, Seconds expected, const std::string& where) {
    const double difference = found / expected - 1.0;
    if (where_.empty() || std::abs(difference) > std::abs(difference_))
      difference_ = difference, where_ = where;
  }
  void record(const std::string& what) const {
    std::ostringstream text;
    text << difference_ << " at " << where_;
    ::testing::Test::RecordProperty(what, text.str());
  }
  double size() const { return std::abs(difference_); }
  const std::string& where() const { return where_; }

 private:
  double difference_ = 0.0;
  std::string where_;
};

// Bytes over all outgoing and over all incoming links, each class counted as often as it has ranks.
// Without a flow's `times`, which counts the equivalent flows on its NIC, not its own bytes.
void expect_all_that_is_sent_to_be_received(const Estimate& estimate) {
  const RankClasses& classes = estimate.step.classes;
  double sent = 0.0;
  double received = 0.0;
  for (int i = 0; i < estimate.step.graph.size(); ++i)
    for (const Flow& flow : estimate.step.graph.task(TaskId{i}).flows)
      for (const LinkUse& use : flow.route) {
        const Link& link = estimate.topology.link(use.link);
        const bool up = link.kind == LinkKind::nvlink_up || link.kind == LinkKind::pcie_up ||
                        link.kind == LinkKind::nic_up;
        (up ? sent : received) += flow.bytes.si();
      }
  EXPECT_NEAR(sent, received, 1e-9 * sent);
  int ranks = 0;
  for (const RankClass& rep : classes.reps()) ranks += rep.ranks;
  EXPECT_EQ(ranks, classes.placement().ranks());
}

void expect_sound(const Scenario& scenario, const Estimate& estimate) {
  EXPECT_EQ(verify(estimate.step, scenario.plan), "");
  const double step = estimate.result.step_time.si();
  // SimGrid takes events less than 1 ns apart for one, so that each task on the path may end so
  // much early; links make a step longer, never shorter.
  const CriticalPath path = critical_path(estimate.step.graph);
  EXPECT_EQ(std::min(path.length, estimate.result.step_time), estimate.result.lower_bound);
  EXPECT_LE(path.length.si(), step * (1.0 + 1e-9) + 1e-9 * static_cast<double>(path.tasks.size()));
  EXPECT_NEAR(estimate.result.busiest().sum().si(), step, 1e-9 * step);
  const Breakdown& parts = estimate.result.busiest();
  for (Seconds part : {parts.compute, parts.tp_exposed, parts.pp_bubble, parts.pp_exposed,
                       parts.dp_exposed, parts.optimizer, parts.imbalance, parts.other})
    EXPECT_GE(part.si(), -1e-9 * step);
  expect_all_that_is_sent_to_be_received(estimate);
}

// The partition that refinement finds, also where the recipe would apply.
Seconds refined_step(const Scenario& scenario, const Estimate& folded) {
  const Placement placement{scenario.plan, scenario.system};
  const Topology topology = Topology::build(scenario.system, scenario.plan.gpus());
  const RankClasses classes = refined(placement, topology);
  EXPECT_LE(classes.reps().size(), folded.step.classes.reps().size());
  if (classes.reps().size() == folded.step.classes.reps().size() && !placement.regular())
    return folded.result.step_time;  // It is the same.
  const TrainingStep step = build_training_step(
      scenario, folded.step.cost,
      StepTraffic{scenario, CollectiveTime{scenario.system}, placement.shapes()}, classes, topology,
      choose_contraction(scenario, *folded.step.cost, placement));
  EXPECT_EQ(verify(step, scenario.plan), "");
  return execute(step.graph, topology).makespan.seconds();
}

// How many plans divide: a case that is dropped in silence fails the test. It is
//     sum over tp pp dp = gpus of  2 (tp > 1 ? 2 : 1) (dp > 1 ? 4 : 1) (pp > 1 ? 2 : 1)
// for two kinds of software, sp, zero x overlap and vpp, less those whose pp x vpp chunks do not
// divide the layers. And whether some placements are regular, and some are not.
struct Expected {
  int plans;
  bool some_regular;
  bool some_irregular;
};

void compare_all_plans(const System& system, int gpus, int layers, std::int64_t heads,
                       const Expected& expected) {
  // Models of 0.3 to 1.6 billion parameters: with tp 1 to 4 several gradient buckets of 40 million
  // each are concurrent with the passes, and meet tensor-parallel traffic.
  Model model = small_gpt(layers, 128 * heads, heads, 4096);
  model.tied_embeddings = true;  // Traffic between first and last stage.
  Largest folding, expanded_folding, contraction, refinement;
  int regular = 0;
  int irregular = 0;
  const int plans = for_each_plan(model, system, gpus, [&](const Scenario& scenario) {
    const std::string name = describe(scenario);
    SCOPED_TRACE(name);
    (Placement{scenario.plan, scenario.system}.regular() ? regular : irregular) += 1;
    const Estimate folded = estimate(scenario);
    const Estimate unfolded = estimate(scenario, {.unfolded = true});
    const Estimate expanded = estimate(scenario, {.expanded = true});
    const Estimate whole = estimate(scenario, {.unfolded = true, .expanded = true});
    for (const Estimate* each : {&folded, &unfolded, &expanded, &whole})
      expect_sound(scenario, *each);
    const auto step = [](const Estimate& each) { return each.result.step_time; };
    folding.note(step(folded), step(unfolded), name);
    expanded_folding.note(step(expanded), step(whole), name);
    contraction.note(step(unfolded), step(whole), name);
    refinement.note(refined_step(scenario, folded), step(unfolded), name);
  });
  folding.record("folded_against_unfolded");
  expanded_folding.record("folded_against_unfolded_expanded");
  contraction.record("contracted_against_expanded");
  refinement.record("refined_against_unfolded");
  EXPECT_EQ(plans, expected.plans);
  EXPECT_EQ(regular > 0, expected.some_regular);
  EXPECT_EQ(irregular > 0, expected.some_irregular);
  // The promise is 0.1 %. What is called exact is held to be: what remains is SimGrid's precision
  // of 1 ns an event, of steps of about a second with thousands of events.
  EXPECT_LT(folding.size(), 1e-7) << folding.where();
  EXPECT_LT(expanded_folding.size(), 1e-7) << expanded_folding.where();
  EXPECT_LT(refinement.size(), 1e-7) << refinement.where();
  // Contraction may ignore transfers that cost less than this (training/contraction.hpp).
  EXPECT_LT(contraction.size(), contraction_tolerance) << contraction.where();
}

// A catalog system with other nodes.
System with_nodes(const std::string& name, int gpus_per_node, int nics_per_node) {
  System system = read_system(name, test_place);
  system.gpus_per_node = system.nvlink_domain = gpus_per_node;
  system.nics_per_node = nics_per_node;
  return system;
}

TEST(AllPlans, SixteenGpusInFourNodes) {
  compare_all_plans(read_system("four-by-four", test_place), 16, 16, 16, {230, true, false});
}

TEST(AllPlans, EightGpusInFourNodes) {
  compare_all_plans(read_system("two-gpus", test_place), 8, 16, 16, {128, true, false});
}

// Pairs and fours of GPUs share a NIC.
TEST(AllPlans, SixteenGpusTwoToANic) {
  compare_all_plans(with_nodes("four-by-four", 4, 2), 16, 16, 16, {230, true, false});
}

TEST(AllPlans, SixteenGpusFourToANic) {
  compare_all_plans(with_nodes("four-by-four", 4, 1), 16, 16, 16, {230, true, false});
}

// In PCIe nodes a GPU's slot carries its traffic inside the node and out of it.
TEST(AllPlans, EightGpusInPcieNodes) {
  System system = with_nodes("four-by-four", 4, 4);
  system.wiring = NodeWiring::pcie;
  compare_all_plans(system, 8, 16, 16, {128, true, false});
}

// Groups that do not nest into nodes.
TEST(AllPlans, TwelveGpusInNodesOfThree) {
  compare_all_plans(with_nodes("four-by-four", 3, 3), 12, 12, 12, {258, true, true});
}

TEST(AllPlans, TwelveGpusTwoToANic) {
  compare_all_plans(with_nodes("four-by-four", 4, 2), 12, 12, 12, {258, true, true});
}

TEST(AllPlans, TwentyGpusInNodesOfFour) {
  compare_all_plans(read_system("four-by-four", test_place), 20, 20, 20, {258, true, true});
}

// The last node is not full.
TEST(AllPlans, SixteenGpusInNodesOfSix) {
  compare_all_plans(with_nodes("four-by-four", 6, 3), 16, 16, 16, {230, false, true});
}

TEST(AllPlans, SixGpusInNodesOfFour) {
  compare_all_plans(read_system("four-by-four", test_place), 6, 12, 12, {96, false, true});
}

// A long ring of which one node is not full: where on it a rank sits does not count. tp = 2, dp =
// 151, one micro-batch, so that every collective meets gradients or weights.
double difference_on_long_rings(const System& system) {
  constexpr int gpus = 302;
  // 4.8 billion parameters: a rank's half is many buckets.
  const Model model = small_gpt(6, 8192, 64, 4096);
  PlanRequest request = plan_request(2, 1, 1, gpus / 2, 240, "megatron-core");
  request.dp_overlap = true;
  const Scenario scenario = scenario_of(model, system, request, gpus);
  const Estimate folded = estimate(scenario, {.expanded = true});
  const Estimate whole = estimate(scenario, {.unfolded = true, .expanded = true});
  EXPECT_LT(folded.step.classes.reps().size(), 302u);
  Largest folding;
  folding.note(folded.result.step_time, whole.result.step_time, describe(scenario));
  folding.record("folded_against_unfolded");
  return folding.size();
}

// Whole nodes but the last: each tensor group inside a node, no two kinds of traffic on one link.
TEST(LongRings, OneNodeNotFull) {
  EXPECT_LT(difference_on_long_rings(read_system("four-by-four", test_place)), 1e-7);
}

// Every third tensor group spans two nodes and shares its NICs with the data-parallel ring.
TEST(LongRings, TensorGroupsAcrossNodes) {
  EXPECT_LT(difference_on_long_rings(with_nodes("four-by-four", 3, 3)), 1e-7);
}

}  // namespace
}  // namespace orrery::folding_test
