#pragma once

namespace orrery {

/// The parent of `node` in one of two binary trees over `nodes` nodes, or -1 for the root. A node
/// that is inside one tree is a leaf of the other (but for the roots), so that both together keep
/// every node's port busy: Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth
/// broadcast, reduction and scan", 2009; NCCL lays them out like this (NVIDIA/nccl
/// src/graph/trees.cc). The first is in-order by the lowest bit of a node's number; the second is
/// its mirror image, or, of an odd number of nodes, the first moved on by one node.
///
///     eight nodes, first tree:  0 - 4 - 2 - 1, 3     second:  7 - 3 - 5 - 6, 4
///                                     - 6 - 5, 7                     - 1 - 2, 0
int tree_parent(int node, int nodes, bool second);

}  // namespace orrery
