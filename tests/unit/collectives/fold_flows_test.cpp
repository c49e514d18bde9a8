#include <gtest/gtest.h>

#include <set>

#include "sim/collectives/collective_flows.hpp"
#include "sim/collectives/isolated_collective.hpp"
#include "tests/support/fabrics.hpp"
#include "tests/support/placements.hpp"

namespace orrery::fold_flows_test {
namespace {

std::vector<Rank> first_ranks(int count) {
  std::vector<Rank> ranks;
  for (int r = 0; r < count; ++r) ranks.push_back(Rank{r});
  return ranks;
}

CollectiveCost ring_cost() {
  CollectiveCost cost;
  cost.scale_up_bytes = Bytes{300.0};
  cost.scale_up_rate = BytesPerSecond{10e9};
  cost.network_bytes = Bytes{100.0};
  cost.network_rate = BytesPerSecond{1e9};
  return cost;
}

// Sixteen ranks in four nodes: a ring has a flow inside the node and one out of it. The two
// directions of a port are one class of links, each crossed by one flow of its kind.
TEST(FoldFlows, ARingOnAUniformMachineIsTwoFlows) {
  const System system = nodes_of(4, 4);
  const Topology topology = Topology::build(system, 16);
  const std::vector<Flow> whole =
      flows_of(topology, legs_of(placement_of(16, 1, 1, system), first_ranks(16), ring_cost()));
  EXPECT_EQ(whole.size(), 32u);
  const std::vector<Flow> folded = fold_flows(topology, whole);
  ASSERT_EQ(folded.size(), 2u);
  for (const Flow& flow : folded) {
    ASSERT_EQ(flow.route.size(), 1u);
    EXPECT_EQ(flow.route[0].times, 1);
  }
}

// Two GPUs a NIC: a flow out of the node names it twice.
TEST(FoldFlows, EquivalentFlowsOnALinkCount) {
  const System system = nodes_of(4, 2);
  const Topology topology = Topology::build(system, 16);
  const std::vector<Flow> folded = fold_flows(
      topology,
      flows_of(topology, legs_of(placement_of(16, 1, 1, system), first_ranks(16), ring_cost())));
  ASSERT_EQ(folded.size(), 2u);
  ASSERT_EQ(folded[1].route.size(), 1u);
  EXPECT_TRUE(topology.link(folded[1].route[0].link).is_nic());
  EXPECT_EQ(folded[1].route[0].times, 2);
}

// A NIC at half speed is another link than its three fellows, and so are the flows that cross it
// and those that meet them.
TEST(FoldFlows, WhatDiffersIsKeptApart) {
  System system = nodes_of(1, 1);
  LinkOverride slow;
  slow.link = "node1.nic0";
  slow.bandwidth = 0.5 * system.nic;
  system.link_overrides.push_back(slow);
  const Topology topology = Topology::build(system, 4);
  CollectiveCost cost = ring_cost();
  cost.scale_up_bytes = Bytes{};
  const std::vector<Flow> folded = fold_flows(
      topology, flows_of(topology, legs_of(placement_of(4, 1, 1, system), first_ranks(4), cost)));
  // 0 -> 1 into the slow NIC, 1 -> 2 out of it; 2 -> 3 and 3 -> 0 at full speed.
  EXPECT_EQ(folded.size(), 3u);
}

// SHARP: what goes up to the switches and down from them crosses each of the eight NICs, out and
// in, but no link between the two leaves, which a ring does cross.
TEST(CollectiveLegs, ToTheSwitchesAndBack) {
  const System system = leaf_spine(1, 2, 1e9);
  const Topology topology = Topology::build(system, 8);
  CollectiveCost cost = ring_cost();
  const auto links = [&] {
    std::set<int> nics, between;
    for (const Flow& flow :
         flows_of(topology, legs_of(placement_of(8, 1, 1, system), first_ranks(8), cost)))
      for (const LinkUse& use : flow.route) {
        if (topology.link(use.link).node < 0) between.insert(use.link.value);
        if (topology.link(use.link).is_nic()) nics.insert(use.link.value);
      }
    return std::pair{nics.size(), between.size()};
  };
  EXPECT_GT(links().second, 0u);
  cost.pattern = CollectivePattern::switches;
  EXPECT_EQ(links(), (std::pair<std::size_t, std::size_t>{16, 0}));
}

// Sixteen ranks on four leaves: every pair its way, but as many flows as links differ.
TEST(LinkFlows, OneALoadedLinkOfAKind) {
  const System system = leaf_spine(1, 1, 1e9);
  const Topology topology = Topology::build(system, 16);
  const Placement placement = placement_of(16, 1, 1, system);
  const std::vector<Leg> legs =
      legs_of(placement, first_ranks(16), Exchange::uniform(16, Bytes{10}), BytesPerSecond{10e9},
              BytesPerSecond{1e9});
  EXPECT_EQ(legs.size(), 240u);
  const std::vector<Flow> flows = link_flows(topology, legs).value();
  // The slowest pair; NVLink ports with 3 x 10 B; NICs with 12 x 10 B; uplinks with 48 x 10 B.
  ASSERT_EQ(flows.size(), 4u);
  EXPECT_TRUE(flows[0].route.empty());
  EXPECT_NEAR(flows[0].rate.si(), 1e9 / 12, 1e-3);
  double most = 0.0;
  for (const Flow& flow : flows) most = std::max(most, flow.bytes.si());
  EXPECT_EQ(most, 480.0);
}

// Of legs that meet in a NIC all must have equally many bytes; of those that meet nowhere not.
TEST(LinkFlows, NoneWhereLegsOfDifferentSizesMeet) {
  const System system = leaf_spine(1, 1, 1e9);
  const Topology topology = Topology::build(system, 16);
  const BytesPerSecond rate{1e9};
  const Leg leg{Rank{0}, Rank{8}, Bytes{10}, rate, false};
  const Leg longer_into_the_same{Rank{4}, Rank{8}, Bytes{20}, rate, false};
  const Leg longer_elsewhere{Rank{4}, Rank{12}, Bytes{20}, rate, false};
  EXPECT_FALSE(link_flows(topology, {leg, longer_into_the_same}).has_value());
  const auto apart = link_flows(topology, {leg, longer_elsewhere});
  ASSERT_TRUE(apart.has_value());
  EXPECT_EQ(apart->front().bytes, Bytes{20});  // The slowest leg, alone.
}

}  // namespace
}  // namespace orrery::fold_flows_test
