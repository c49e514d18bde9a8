#include "sim/training/contraction.hpp"

#include <gtest/gtest.h>

#include "tests/support/placements.hpp"

namespace orrery::contraction_test {
namespace {

Scenario scenario_on(const System& system, int tp, int pp, int dp, bool overlap) {
  PlanRequest request = plan_request(tp, pp, 1, 2 * pp * dp, 240, "megatron-core");
  request.dp_overlap = overlap;
  request.sp = false;
  return scenario_of(small_gpt(12, 384, 12, 1024), system, request, tp * pp * dp);
}

bool is_private(const System& system, int tp, int pp, int dp, bool overlap) {
  const Scenario scenario = scenario_on(system, tp, pp, dp, overlap);
  return layer_links_are_private(scenario, Placement{scenario.plan, system});
}

TEST(Contraction, TensorLinksArePrivateWhereNothingElseUsesTheirKind) {
  const System fours = nodes_of(4, 4);
  EXPECT_TRUE(is_private(fours, 1, 4, 4, true));    // No tensor traffic at all.
  EXPECT_TRUE(is_private(fours, 4, 4, 1, false));   // Tensor on NVLink, pipeline on the NICs.
  EXPECT_FALSE(is_private(fours, 2, 4, 1, false));  // Two stages in a node: both on NVLink.
  EXPECT_TRUE(is_private(fours, 4, 1, 4, true));    // Replicas a node each: data on the NICs.
  EXPECT_FALSE(is_private(fours, 2, 1, 8, true));   // Two replicas a node, overlapped ...
  EXPECT_TRUE(is_private(fours, 2, 1, 8, false));   // ... and after the passes.
  EXPECT_FALSE(is_private(nodes_of(2, 2), 4, 3, 1, false));  // Tensor groups of two nodes.
}

// A PCIe slot carries what goes to the neighbour and what goes to the NIC.
TEST(Contraction, InPcieNodesAllTrafficMeets) {
  System system = nodes_of(4, 4);
  system.wiring = NodeWiring::pcie;
  EXPECT_FALSE(is_private(system, 4, 4, 1, false));
  EXPECT_TRUE(is_private(system, 4, 1, 4, false));
}

// tp = 2 in nodes of three: only the second group spans two nodes, and meets the pipeline there. In
// nodes of four none does.
TEST(Contraction, LooksAtEveryGroupOfAnIrregularPlacement) {
  EXPECT_FALSE(is_private(nodes_of(3, 3), 2, 2, 3, false));
  EXPECT_TRUE(is_private(nodes_of(4, 4), 2, 2, 3, false));
}

// Two stages of two GPUs in a node. Four transfers of 2 x 240 x 384 / 2 bytes a micro-batch are
// nothing against passes of milliseconds at 10 TB/s. At 10 MB/s, where passes are all collectives,
// they are 4 x 1/2 tensor against 4 all-reduces of 6 layers: 8 %, far above the tolerance.
TEST(Contraction, AllowsForTransfersThatHardlyCount) {
  for (const auto& [rate, quiet] :
       std::vector<std::pair<double, bool>>{{10e12, true}, {10e6, false}}) {
    System system = nodes_of(4, 4);
    system.scale_up = BytesPerSecond{rate};
    const Scenario scenario = scenario_on(system, 2, 2, 1, false);
    const Placement placement{scenario.plan, system};
    const StepCost cost = price_step(scenario, nullptr, CollectiveTime{system}, placement.shapes());
    const Contraction contraction = choose_contraction(scenario, cost, placement);
    EXPECT_EQ(contraction.quiet, quiet);
    EXPECT_LE(contraction.overlapped, contraction.quiet);
  }
}

}  // namespace
}  // namespace orrery::contraction_test
