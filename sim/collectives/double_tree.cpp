#include "sim/collectives/double_tree.hpp"

#include <cassert>

namespace orrery {
namespace {

int parent_in_first(int node, int nodes) {
  if (node == 0) return -1;
  const int bit = node & -node;
  const int up = (node ^ bit) | (bit << 1);
  return up < nodes ? up : node ^ bit;
}

}  // namespace

int tree_parent(int node, int nodes, bool second) {
  assert(0 <= node && node < nodes);
  if (!second) return parent_in_first(node, nodes);
  const bool mirrored = nodes % 2 == 0;
  const int as_first = mirrored ? nodes - 1 - node : (node + nodes - 1) % nodes;
  const int up = parent_in_first(as_first, nodes);
  if (up < 0) return -1;
  return mirrored ? nodes - 1 - up : (up + 1) % nodes;
}

}  // namespace orrery
