// Bytes on the links of a step of round numbers, by user.
#include "sim/training/link_loads.hpp"
#include "tests/closed_form/hand_made.hpp"

namespace orrery::links_test {
namespace {

// A pass that ends in a collective of `bytes` over each member's NVLink port.
PassCost with_collective(double bytes) {
  PassCost cost = kernels(microseconds(10.0));
  CollectiveCost collective;
  collective.scale_up_bytes = Bytes{bytes};
  collective.scale_up_rate = BytesPerSecond{10e9};
  cost.segments.back().after = GroupCollective{collective, GroupKind::tensor};
  return cost;
}

struct Loads {
  LinkReport nvlink;
  LinkReport nic;
  Seconds step;
};

Loads loads_of(const Scenario& scenario, const StepCost& cost, bool unfolded, bool contracted) {
  const Placement placement{scenario.plan, scenario.system};
  const RankClasses classes =
      unfolded ? RankClasses::unfolded(placement) : RankClasses::folded(placement);
  const Topology topology = Topology::build(scenario.system, scenario.plan.gpus());
  const TrainingStep step = build_training_step(
      scenario, std::make_shared<const StepCost>(cost),
      StepTraffic{scenario, CollectiveTime{scenario.system}, placement.shapes()}, classes, topology,
      contracted);
  Loads loads{{}, {}, execute(step.graph, topology).makespan.seconds()};
  for (const LinkReport& report : link_reports(step, loads.step, topology))
    (report.kind == "nic" ? loads.nic : loads.nvlink) = report;
  return loads;
}

double of(const LinkReport& report, LinkUser user) {
  return report.by_user[static_cast<std::size_t>(user)].si();
}

// Two stages of two replicas, each a tensor group of four in a node of its own: 16 GPUs. Three
// micro-batches a replica, and of each
//     3 MB over the NVLink port in the forward pass and 5 MB in the backward pass,
//     7 MB out of the NIC from stage to stage;
// and once the gradients of two million parameters, two bytes each, over two replicas: 4 MB.
TEST(Links, EachUserHasItsBytes) {
  const Scenario scenario = pipeline(without_latency(), &one_f_one_b(), 2, 1, 3, 2, 4);
  ASSERT_EQ(scenario.software.gradient_bytes, 2);
  StepCost cost = *prices(scenario, Seconds{}, Seconds{}, Bytes{7e6}, 2'000'000);
  for (StageCost& stage : cost.stages) {
    stage.forward = with_collective(3e6);
    stage.backward = with_collective(5e6);
    stage.buckets = {{stage.forward, stage.backward, stage.parameters}};
  }
  for (const bool unfolded : {false, true})
    for (const bool contracted : {false, true}) {
      SCOPED_TRACE(std::to_string(unfolded) + std::to_string(contracted));
      const Loads loads = loads_of(scenario, cost, unfolded, contracted);
      EXPECT_NEAR(of(loads.nvlink, LinkUser::tensor), 3 * (3e6 + 5e6), 1e-3);
      EXPECT_EQ(of(loads.nvlink, LinkUser::pipeline), 0.0);
      EXPECT_EQ(of(loads.nvlink, LinkUser::data), 0.0);
      EXPECT_EQ(of(loads.nic, LinkUser::tensor), 0.0);
      EXPECT_NEAR(of(loads.nic, LinkUser::pipeline), 3 * 7e6, 1e-3);
      EXPECT_NEAR(of(loads.nic, LinkUser::data), 4e6, 1e-3);
      EXPECT_EQ(loads.nic.bytes.si(), 25e6);
      EXPECT_NEAR(loads.nic.busy_fraction, 25e6 / 1e9 / loads.step.si(), 1e-12);
      EXPECT_NEAR(loads.nvlink.busy_fraction, 24e6 / 10e9 / loads.step.si(), 1e-12);
    }
}

// A NIC that four GPUs share carries what the four send, though one represents all.
TEST(Links, ASharedNicCarriesAllEquivalentRanks) {
  System system = without_latency();
  system.nics_per_node = 1;
  const Scenario scenario = pipeline(system, &one_f_one_b(), 2, 1, 3, 1, 4);
  const auto cost = prices(scenario, microseconds(10.0), microseconds(10.0), Bytes{7e6});
  for (const bool unfolded : {false, true})
    EXPECT_NEAR(of(loads_of(scenario, *cost, unfolded, true).nic, LinkUser::pipeline), 4 * 3 * 7e6,
                1e-3);
}

}  // namespace
}  // namespace orrery::links_test
