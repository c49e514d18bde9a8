#include <gtest/gtest.h>

#include <map>

#include "sim/collectives/collective_flows.hpp"
#include "sim/plan/placement.hpp"
#include "sim/plan/rank_classes.hpp"
#include "tests/support/placements.hpp"

namespace orrery::group_flows_test {
namespace {

std::vector<Rank> first_ranks(int count) {
  std::vector<Rank> ranks;
  for (int r = 0; r < count; ++r) ranks.push_back(Rank{r});
  return ranks;
}

// Nodes of three, ranks 0 1 2 | 3 4 5 | 6: a ring in each node that has several, and one ring
// between the nodes, for the last has one member only.
TEST(Rings, AsManyBetweenDomainsAsTheSmallestHasMembers) {
  const Placement placement = placement_of(7, 1, 1, nodes_of(3, 3));
  const std::vector<Ring> rings = rings_of(placement, first_ranks(7));
  ASSERT_EQ(rings.size(), 3u);
  EXPECT_TRUE(rings[0].same_domain);
  EXPECT_EQ(rings[1].ranks, (std::vector<Rank>{{3}, {4}, {5}}));
  EXPECT_FALSE(rings[2].same_domain);
  EXPECT_EQ(rings[2].ranks, (std::vector<Rank>{{0}, {3}, {6}}));
  EXPECT_EQ(rings_of(placement, first_ranks(6)).size(), 2u + 3u);
  EXPECT_EQ(rings_of(placement, first_ranks(1)).size(), 0u);
}

// Whatever the group and the nodes, unfolded or folded: every port that sends also receives, the
// same bytes, and no rank sends twice of a kind.
TEST(GroupFlows, WhatAClassSendsItReceives) {
  CollectiveCost cost;
  cost.scale_up_bytes = Bytes{100.0};
  cost.scale_up_rate = BytesPerSecond{1e9};
  cost.network_bytes = Bytes{10.0};
  cost.network_rate = BytesPerSecond{1e9};
  for (int node = 1; node <= 5; ++node)
    for (int size = 2; size <= 12; ++size)
      for (bool fold : {false, true}) {
        SCOPED_TRACE(std::to_string(size) + " ranks in nodes of " + std::to_string(node));
        const System system = nodes_of(node, node);
        const Placement placement = placement_of(size, 1, 1, system);
        const Topology topology = Topology::build(system, size);
        const RankClasses classes =
            fold ? refined(placement, topology) : RankClasses::unfolded(placement);
        std::map<std::string, double> balance;  // "node0.gpu1.nvlink" -> sent less received.
        std::map<std::string, int> sends;
        for (const Flow& flow : collective_flows(topology, classes, first_ranks(size), cost)) {
          ASSERT_EQ(flow.route.size(), 2u);
          for (const LinkUse& use : flow.route) {
            const std::string link = topology.name(use.link);
            const std::string port = link.substr(0, link.rfind('.'));
            const bool up = link.ends_with(".up");
            balance[port] += up ? flow.bytes.si() : -flow.bytes.si();
            sends[port] += up;
          }
        }
        EXPECT_FALSE(balance.empty());
        for (const auto& [port, difference] : balance) EXPECT_EQ(difference, 0.0) << port;
        for (const auto& [port, count] : sends) EXPECT_EQ(count, 1) << port;
      }
}

// A group inside one node, priced like one that spans two: it keeps the other's pace, over NVLink.
TEST(GroupFlows, AGroupInOneDomainIsAsSlowAsTheMostSpread) {
  const System system = nodes_of(3, 3);
  const RankClasses classes = RankClasses::unfolded(placement_of(2, 3, 1, system));
  Topology topology = Topology::build(system, 6);
  CollectiveCost cost;
  cost.network_bytes = Bytes{10.0};
  cost.network_rate = BytesPerSecond{2.0};
  const std::vector<Flow> flows = collective_flows(topology, classes, {{0}, {1}}, cost);
  ASSERT_EQ(flows.size(), 2u);
  for (const Flow& flow : flows) {
    EXPECT_EQ((flow.bytes / flow.rate).si(), 5.0);
    EXPECT_FALSE(topology.link(flow.route.front().link).is_nic());
  }
}

TEST(GroupFlows, ClassesOfAGroupAscendAndAreDistinct) {
  const RankClasses classes = RankClasses::folded(placement_of(2, 2, 2, nodes_of(4, 4)));
  EXPECT_EQ(reps_in(classes, {{0}, {1}, {6}}), (std::vector<int>{0, 1}));
}

// Folded, four GPUs on a NIC: a flow of one counts for the four that send with it.
TEST(Wiring, AnEquivalentRankOnTheSameNicCounts) {
  const System system = nodes_of(4, 1);
  const RankClasses classes = RankClasses::folded(placement_of(1, 8, 1, system));
  Topology topology = Topology::build(system, 8);
  const std::vector<LinkUse> uses = route(topology, classes, 0, Rank{4});
  ASSERT_EQ(uses.size(), 2u);
  for (const LinkUse& use : uses) {
    EXPECT_TRUE(topology.link(use.link).is_nic());
    EXPECT_EQ(use.times, 4);
  }
}

// The equivalent receiver may lie elsewhere than the rank that represents it: rank 4 of the same
// stage represents rank 5's class, but from rank 0 the route is still one out of the node.
TEST(Wiring, UnfoldedTheWayIsTheRoute) {
  const System system = nodes_of(4, 4);
  const RankClasses classes = RankClasses::unfolded(placement_of(4, 4, 1, system));
  Topology topology = Topology::build(system, 16);
  for (int from = 0; from < 16; ++from)
    for (int to = 0; to < 16; ++to) {
      if (from == to) continue;
      std::vector<LinkId> links;
      for (const LinkUse& use : route(topology, classes, from, Rank{to})) links.push_back(use.link);
      EXPECT_EQ(links, topology.route(Rank{from}, Rank{to}));
    }
}

}  // namespace
}  // namespace orrery::group_flows_test
