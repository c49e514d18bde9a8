#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/support/placements.hpp"

namespace orrery::placement_test {
namespace {

std::vector<int> values(const std::vector<Rank>& ranks) {
  std::vector<int> list;
  for (Rank rank : ranks) list.push_back(rank.value);
  return list;
}

// Megatron's order: rank = (stage dp + data) tp + tensor.
TEST(Placement, TensorIsFastestThenDataThenPipeline) {
  const Placement placement = placement_of(2, 3, 2, nodes_of(4, 4));
  EXPECT_EQ(placement.rank({1, 2, 1}).value, (1 * 3 + 2) * 2 + 1);
  EXPECT_EQ(values(placement.group(GroupKind::tensor, {1, 0, 1})), (std::vector<int>{6, 7}));
  EXPECT_EQ(values(placement.group(GroupKind::data, {0, 1, 1})), (std::vector<int>{1, 3, 5}));
}

// With context ranks: rank = ((stage dp + data) cp + context) tp + tensor. Gradients are summed
// over replicas and context ranks alike.
TEST(Placement, ContextIsBetweenTensorAndData) {
  Plan plan;
  plan.tp = 2, plan.cp = 2, plan.dp = 3, plan.pp = 2;
  const Placement placement{plan, nodes_of(4, 4)};
  EXPECT_EQ(placement.rank({1, 2, 1, 1}).value, ((1 * 3 + 2) * 2 + 1) * 2 + 1);
  for (int r = 0; r < placement.ranks(); ++r)
    EXPECT_EQ(placement.rank(placement.coordinates(Rank{r})).value, r);
  const Coordinates at{1, 1, 0, 1};  // Rank 12 + 4 + 2.
  EXPECT_EQ(values(placement.group(GroupKind::tensor, at)), (std::vector<int>{18, 19}));
  EXPECT_EQ(values(placement.group(GroupKind::context, at)), (std::vector<int>{16, 18}));
  EXPECT_EQ(values(placement.group(GroupKind::data, at)),
            (std::vector<int>{12, 14, 16, 18, 20, 22}));
  for (GroupKind kind : placement.kinds()) {
    std::vector<int> seen;  // Groups of a kind part the stage.
    for (const std::vector<Rank>& group : placement.groups(kind, 1))
      for (Rank rank : group) seen.push_back(rank.value);
    std::sort(seen.begin(), seen.end());
    std::vector<int> stage(12);
    std::iota(stage.begin(), stage.end(), 12);
    EXPECT_EQ(seen, stage);
  }
}

TEST(Placement, CoordinatesAreTheInverseOfRank) {
  for (int tp = 1; tp <= 4; ++tp)
    for (int dp = 1; dp <= 4; ++dp)
      for (int pp = 1; pp <= 4; ++pp) {
        const Placement placement = placement_of(tp, dp, pp, nodes_of(4, 4));
        for (int r = 0; r < placement.ranks(); ++r)
          EXPECT_EQ(placement.rank(placement.coordinates(Rank{r})).value, r);
      }
}

// Node of 4 GPUs: with 2 NICs GPUs 0, 1 use the first and 2, 3 the second; the next node's follow.
TEST(Placement, NicsCountOverTheCluster) {
  const Placement shared = placement_of(8, 1, 1, nodes_of(4, 2));
  std::vector<int> nics;
  for (int r = 0; r < 8; ++r) nics.push_back(shared.nic(Rank{r}));
  EXPECT_EQ(nics, (std::vector<int>{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(shared.gpus_per_nic(), 2);
  // More NICs than GPUs: each GPU has its own.
  const Placement many = placement_of(8, 1, 1, nodes_of(4, 8));
  for (int r = 1; r < 8; ++r) EXPECT_NE(many.nic(Rank{r}), many.nic(Rank{r - 1}));
  EXPECT_EQ(many.gpus_per_nic(), 1);
}

TEST(Placement, RegularWhereGroupsNestIntoNodes) {
  struct Case {
    int tp, dp, pp, gpus, nics;
  };
  for (const auto& [tp, dp, pp, gpus, nics] : std::vector<Case>{
           {4, 4, 1, 4, 4}, {2, 2, 4, 4, 4}, {8, 2, 1, 4, 4}, {1, 16, 1, 4, 1}, {2, 3, 2, 3, 3}}) {
    SCOPED_TRACE(std::to_string(tp) + " " + std::to_string(dp) + " " + std::to_string(pp));
    const bool nests = tp % gpus == 0 || gpus % tp == 0;
    EXPECT_EQ(placement_of(tp, dp, pp, nodes_of(gpus, nics)).regular(), nests);
  }
  EXPECT_FALSE(placement_of(1, 3, 4, nodes_of(4, 4)).regular());  // A stage of 3 in nodes of 4.
  EXPECT_FALSE(placement_of(1, 6, 1, nodes_of(4, 4)).regular());  // 6 GPUs: half a node left over.
  EXPECT_TRUE(placement_of(1, 2, 1, nodes_of(4, 4)).regular());   // Half of one node.
}

// Sixteen ranks in nodes of four.
TEST(Placement, ShapesCountDomainsAndMembers) {
  const GroupShapes wide = placement_of(8, 2, 1, nodes_of(4, 4)).shapes();
  EXPECT_EQ(wide.tensor.ranks, 8);
  EXPECT_EQ(wide.tensor.domains, 2);     // 8 neighbours: two nodes
  EXPECT_EQ(wide.tensor.per_domain, 4);  // of four each.
  EXPECT_EQ(wide.data.domains, 2);       // Ranks t and 8 + t: one in each of two nodes.
  EXPECT_EQ(wide.data.per_domain, 1);
  const GroupShapes narrow = placement_of(2, 8, 1, nodes_of(4, 4)).shapes();
  EXPECT_EQ(narrow.tensor.domains, 1);
  EXPECT_EQ(narrow.data.domains, 4);  // Every second rank of 16: two a node.
  EXPECT_EQ(narrow.data.per_domain, 2);
  EXPECT_EQ(narrow.model.ranks, 2);
}

// tp = 2 in nodes of three: groups 0 1 | 2 3 | 4 5, of which the second spans two nodes.
TEST(Placement, ShapesAreThoseOfTheMostSpreadGroup) {
  const GroupShapes shapes = placement_of(2, 3, 1, nodes_of(3, 3)).shapes();
  EXPECT_EQ(shapes.tensor.domains, 2);
  EXPECT_EQ(shapes.tensor.per_domain, 1);
}

// Tensor groups of two are GPUs 2i and 2i + 1, which bridges join; their replicas are 0 and 2.
TEST(Placement, GroupsOfTwoMayHaveABridge) {
  const System system = read_system("a100-pcie-nvlink-bridge", test_place);
  Plan plan;
  plan.tp = plan.dp = plan.pp = 2;
  const Placement placement{plan, system};
  const Topology topology = Topology::build(system, 8);
  const GroupShapes shapes = shapes_on(system, placement, topology);
  EXPECT_EQ(shapes.tensor.bridge, BytesPerSecond{300e9});
  EXPECT_EQ(shapes.data.bridge, BytesPerSecond{});
  // With one bridge missing, some groups are joined by PCIe, and the slowest counts.
  System three = system;
  three.nvlink_pairs.pop_back();
  EXPECT_EQ(shapes_on(three, placement, topology).tensor.bridge, BytesPerSecond{});
}

}  // namespace
}  // namespace orrery::placement_test
