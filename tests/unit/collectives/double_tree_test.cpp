#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "sim/collectives/collective_flows.hpp"
#include "sim/nccl/collective_cost.hpp"

namespace orrery::double_tree_test {
namespace {

int children(int node, int nodes, bool second) {
  int count = 0;
  for (int other = 0; other < nodes; ++other) count += tree_parent(other, nodes, second) == node;
  return count;
}

TEST(DoubleTree, EightNodesAsInTheFigure) {
  const std::vector<int> first{-1, 2, 4, 2, 0, 6, 4, 6};
  const std::vector<int> second{1, 3, 1, 7, 5, 3, 5, -1};
  for (int node = 0; node < 8; ++node) {
    EXPECT_EQ(tree_parent(node, 8, false), first[static_cast<std::size_t>(node)]);
    EXPECT_EQ(tree_parent(node, 8, true), second[static_cast<std::size_t>(node)]);
  }
}

// One root each, which all reach; at most two children; inside at most one of the two trees; at
// most ceil(log2 n) levels; and no node sends more than the price says.
TEST(DoubleTree, IsTwoTreesThatLoadAllNodes) {
  for (int nodes = 2; nodes <= 130; ++nodes) {
    SCOPED_TRACE(nodes);
    std::vector<int> sends(static_cast<std::size_t>(nodes), 0);
    for (const bool second : {false, true}) {
      int roots = 0;
      for (int node = 0; node < nodes; ++node) {
        const int up = tree_parent(node, nodes, second);
        roots += up < 0;
        sends[static_cast<std::size_t>(node)] += (up >= 0) + children(node, nodes, second);
        EXPECT_LE(children(node, nodes, second), 2);
        int at = node, levels = 0;
        for (; tree_parent(at, nodes, second) >= 0; ++levels) at = tree_parent(at, nodes, second);
        EXPECT_LE(1 << (levels - 1 < 0 ? 0 : levels - 1), nodes);
      }
      EXPECT_EQ(roots, 1);
    }
    for (int node = 0; node < nodes; ++node)
      if (children(node, nodes, false) == 2) {
        EXPECT_LE(children(node, nodes, true), 1);
      }
    const int busiest = *std::max_element(sends.begin(), sends.end());
    EXPECT_LE(busiest, tree_sends(nodes));
    if (nodes != 3) {
      EXPECT_EQ(busiest, tree_sends(nodes));
    }
  }
}

}  // namespace
}  // namespace orrery::double_tree_test
