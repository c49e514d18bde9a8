#include <gtest/gtest.h>

#include "sim/cluster/fabric_plan.hpp"
#include "tests/support/fabrics.hpp"

namespace orrery::fabric_figures_test {
namespace {

// Nodes of four 1 GB/s NICs: half of n nodes brings 2n GB/s.
void expect_bisection(const System& system, int nodes, double expected) {
  const FabricPlan plan{system, nodes};
  const auto closed = closed_form_bisection(system, plan);
  ASSERT_TRUE(closed.has_value());
  EXPECT_DOUBLE_EQ(closed->si(), expected);
  EXPECT_DOUBLE_EQ(bisection(plan).si(), expected);
}

TEST(Bisection, OfOneSwitchIsWhatTheNicsCarry) {
  expect_bisection(fabric_system(FabricLayout::single_switch), 6, 3 * 4e9);
  expect_bisection(fabric_system(FabricLayout::single_switch), 7, 3 * 4e9);  // The smaller half.
}

TEST(Bisection, OfALeafSpineIsTheLeastOfNicsAndUplinks) {
  // Four leaves of two nodes: two leaves send 2 x 3 spines x uplink, or the NICs' 16 GB/s.
  expect_bisection(leaf_spine(2, 3, 1e9), 8, 6e9);
  expect_bisection(leaf_spine(2, 3, 4e9), 8, 16e9);
  expect_bisection(leaf_spine(4, 3, 1e9), 4, 8e9);  // One leaf.
}

TEST(Bisection, OfRailsCountsEveryRailsLeaf) {
  // Two pods of two nodes; one pod: 4 leaves x 2 spines x 0.5 GB/s = 4, of 8 GB/s of NICs.
  expect_bisection(rail_optimized(2, 2, 0.5e9), 4, 4e9);
  expect_bisection(rail_optimized(2, 2, 2e9), 4, 8e9);
}

TEST(Bisection, OfAFatTreeIsLimitedAtAnyLevel) {
  // Four pods of two one-node leaves; half: 4 nodes bring 16 GB/s; 4 leaves x 2 spines x uplink;
  // 2 pods x 2 spines x 2 cores x core uplink.
  expect_bisection(fat_tree(1, 2, 2, 4, 4e9, 4e9), 8, 16e9);
  expect_bisection(fat_tree(1, 2, 2, 4, 1e9, 4e9), 8, 8e9);
  expect_bisection(fat_tree(1, 2, 2, 4, 4e9, 0.5e9), 8, 4e9);
  // Two leaves of one pod meet at the spines, whatever the cores do.
  expect_bisection(fat_tree(1, 2, 2, 4, 1e9, 0.001e9), 2, 2e9);
}

TEST(Bisection, OfAFatTreeWithRailsToo) {
  // Two rows a pod, four rows, four rails: each half has 2 rows = one pod a rail, four pods.
  System system = fat_tree(1, 2, 2, 4, 1e9, 0.25e9);
  system.shape.rails = true;
  // NICs 8 GB/s; leaves 8 x 2 x 1 = 16; pods 4 x 2 spines x 2 cores x 0.25 = 4 GB/s.
  expect_bisection(system, 4, 4e9);
}

TEST(Bisection, OfADragonflyIsItsGlobalCables) {
  // Four groups of three routers with a global link each: one cable between any two groups; two
  // groups reach two others by 4 cables of 1 GB/s. NICs would bring 6 x 4.
  expect_bisection(dragonfly(1, 3, 4, 1, 100e9, 1e9), 12, 4e9);
  expect_bisection(dragonfly(1, 3, 4, 1, 100e9, 10e9), 12, 24e9);
}

TEST(Bisection, WithoutAClosedFormIsAMaximumFlow) {
  // A ring of six switches is cut in two places.
  const FabricPlan ring{ring_of_switches(6, 1e9), 6};
  EXPECT_FALSE(closed_form_bisection(ring_of_switches(6, 1e9), ring).has_value());
  EXPECT_DOUBLE_EQ(bisection(ring).si(), 2e9);
  // Three leaves of two nodes: the one in the middle holds a node of each half, whose 4 GB/s stay
  // on the leaf. Each half's own leaf adds what its 2 uplinks of 1 GB/s carry.
  const System system = leaf_spine(2, 2, 1e9);
  const FabricPlan three{system, 6};
  EXPECT_FALSE(closed_form_bisection(system, three).has_value());
  EXPECT_DOUBLE_EQ(bisection(three).si(), 4e9 + 2e9);
  EXPECT_DOUBLE_EQ(bisection(FabricPlan{system, 1}).si(), 0.0);
}

TEST(Bisection, CountsWhatIsDown) {
  const System system = with_down(leaf_spine(2, 3, 1e9), "leaf0-spine0");
  FabricPlan plan{system, 8};
  for (const LinkOverride& change : system.link_overrides) plan.apply(change);
  EXPECT_FALSE(closed_form_bisection(system, plan).has_value());
  EXPECT_DOUBLE_EQ(bisection(plan).si(), 5e9);  // One of six uplinks less.
}

// NIC, leaf, spine, leaf, NIC: 4 links; with cores 6; a dragonfly's minimal way has three.
TEST(Diameter, OfEveryLayout) {
  EXPECT_EQ(diameter(FabricPlan{fabric_system(FabricLayout::single_switch), 4}), 2);
  EXPECT_EQ(diameter(FabricPlan{leaf_spine(2, 3, 1e9), 8}), 4);
  EXPECT_EQ(diameter(FabricPlan{leaf_spine(2, 3, 1e9), 2}), 2);
  EXPECT_EQ(diameter(FabricPlan{fat_tree(1, 2, 2, 4, 1e9, 1e9), 8}), 6);
  EXPECT_EQ(diameter(FabricPlan{dragonfly(1, 3, 4, 1, 1e9, 1e9), 12}), 5);
  EXPECT_EQ(diameter(FabricPlan{ring_of_switches(6, 1e9), 6}), 5);
  System split = ring_of_switches(4, 1e9);
  split.shape.links.resize(1);
  EXPECT_EQ(diameter(FabricPlan{split, 4}), -1);
}

// Six nodes: 24 NVLinks and NICs; 3 leaves x 2 spines.
TEST(CableCounts, CountBothDirectionsOnce) {
  const System system = leaf_spine(2, 2, 1e9);
  const auto counts = cable_counts(system, Topology::build(system, 23));
  EXPECT_EQ(counts, (std::map<std::string, int>{{"nvlink", 24}, {"nic", 24}, {"leaf-spine", 6}}));
}

// An NVL72 domain of 18 nodes: 20 nodes are one domain and two nodes.
TEST(CableCounts, OfADomainThatIsNotFull) {
  const System system = read_system("gb200-nvl72", {"test", ""});
  const auto counts = cable_counts(system, Topology::build(system, 80));
  EXPECT_EQ(counts, (std::map<std::string, int>{{"nvlink", 80}, {"nic", 80}}));
}

// The SuperPOD's tables: 128 nodes, 32 leaves, 16 spines; full bisection: 512 NICs x 50 GB/s x
// 0.97.
TEST(Catalog, SuperPodsAreFullFatTrees) {
  const System h100 = read_system("dgx-h100-superpod", {"test", ""});
  const FabricPlan plan{h100, 128};
  EXPECT_EQ(plan.switches(), 32 + 16);
  EXPECT_DOUBLE_EQ(bisection(plan).si(), 512 * 50e9 * 0.97);
  // 56 leaves, 80 spines, 28 cores; 140 x 8 / 2 NICs of 25 GB/s.
  const System a100 = read_system("dgx-a100-superpod", {"test", ""});
  const FabricPlan tree{a100, 140};
  EXPECT_EQ(tree.switches(), 56 + 80 + 28);
  EXPECT_DOUBLE_EQ(bisection(tree).si(), 560 * 25e9 * 0.97);
  const System half = read_system("hgx-h100-leaf-spine-2to1", {"test", ""});
  EXPECT_DOUBLE_EQ(bisection(FabricPlan{half, 16}).si(), 0.5 * 64 * 50e9 * 0.95);
}

}  // namespace
}  // namespace orrery::fabric_figures_test
