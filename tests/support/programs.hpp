#pragma once

#include <algorithm>
#include <vector>

#include "sim/collectives/collective_flows.hpp"
#include "sim/collectives/collective_program.hpp"

namespace orrery {

inline void add_message(CollectiveProgram& program, int step, int src, int dst, double bytes) {
  program.messages.push_back({step, step, src, dst, Bytes{bytes}});
  program.ranks = std::max({program.ranks, src + 1, dst + 1});
}

/// An all-reduce around a ring of these ranks, round by round: 2 (n-1) rounds in which each sends
/// 1/n of the tensor to the next.
inline void add_stepwise_ring(CollectiveProgram& program, const std::vector<int>& ring,
                              double tensor) {
  const int n = static_cast<int>(ring.size());
  for (int step = 0; step < 2 * (n - 1); ++step)
    for (int i = 0; i < n; ++i)
      add_message(program, step, ring[static_cast<std::size_t>(i)],
                  ring[static_cast<std::size_t>((i + 1) % n)], tensor / n);
}

/// An all-to-all in which in round k everyone sends to the k-th behind it.
inline void add_stepwise_pairs(CollectiveProgram& program, int ranks, double a_pair) {
  for (int step = 1; step < ranks; ++step)
    for (int i = 0; i < ranks; ++i) add_message(program, step, i, (i + step) % ranks, a_pair);
}

/// How far a node of one of the two trees is from its root.
inline int tree_level(int node, int nodes, bool second) {
  const int up = tree_parent(node, nodes, second);
  return up < 0 ? 0 : 1 + tree_level(up, nodes, second);
}

/// An all-reduce over both trees of `nodes` ranks, half of the tensor each in `chunks`: chunk c
/// climbs one level a step, one step behind chunk c - 1, turns at the root and comes down again.
inline void add_stepwise_trees(CollectiveProgram& program, int nodes, double tensor, int chunks) {
  for (const bool second : {false, true}) {
    int depth = 0;
    for (int node = 0; node < nodes; ++node)
      depth = std::max(depth, tree_level(node, nodes, second));
    for (int node = 0; node < nodes; ++node) {
      const int up = tree_parent(node, nodes, second);
      if (up < 0) continue;
      const int level = tree_level(node, nodes, second);
      for (int c = 0; c < chunks; ++c) {
        add_message(program, c + depth - level, node, up, tensor / 2 / chunks);
        add_message(program, c + depth + level - 1, up, node, tensor / 2 / chunks);
      }
    }
  }
}

}  // namespace orrery
