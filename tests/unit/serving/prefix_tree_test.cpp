#include <gtest/gtest.h>

#include <list>
#include <map>
#include <set>

#include "sim/core/random.hpp"
#include "sim/serving/kv_cache.hpp"

namespace orrery::prefix_tree_test {
namespace {

using Hashes = std::vector<std::uint64_t>;

PrefixPath path(const Hashes& hashes) { return {hashes, 1, hashes.size()}; }

PrefixTree::Index hold(PrefixTree& tree, const Hashes& hashes) {
  const PrefixTree::Match match = tree.match(path(hashes));
  if (match.deepest != PrefixTree::none) tree.use(match.deepest);
  return tree.extend(match.deepest, path(hashes), match.nodes);
}

TEST(PrefixTree, KnowsHowFarAPromptIsThere) {
  PrefixTree tree{8};
  const Hashes first{1, 2, 3}, branch{1, 2, 9, 10}, other{7};
  EXPECT_EQ(tree.match(path(first)).nodes, 0u);
  hold(tree, first);
  EXPECT_EQ(tree.match(path(first)).nodes, 3u);
  EXPECT_EQ(tree.match(path(branch)).nodes, 2u);
  EXPECT_EQ(tree.match(path(other)).nodes, 0u);
  hold(tree, branch);
  EXPECT_EQ(tree.nodes(), 5);
  EXPECT_EQ(tree.unused(), 0);
}

TEST(PrefixTree, EvictsTheOldestLeafFirst) {
  PrefixTree tree{8};
  const Hashes first{1, 2, 3}, second{1, 2, 4};
  const PrefixTree::Index a = hold(tree, first), b = hold(tree, second);
  tree.release(a);
  EXPECT_EQ(tree.unused(), 1);  // 1 and 2 are in use below the second.
  tree.release(b);
  EXPECT_EQ(tree.unused(), 4);
  EXPECT_EQ(tree.match(path(first)).unused, 3);
  tree.evict();
  EXPECT_EQ(tree.match(path(first)).nodes, 2u);
  EXPECT_EQ(tree.match(path(second)).nodes, 3u);
  tree.evict();
  EXPECT_EQ(tree.match(path(second)).nodes, 2u);
  tree.evict();
  tree.evict();
  EXPECT_EQ(tree.nodes(), 0);
}

TEST(PrefixTree, CountsEveryStridethHash) {
  PrefixTree tree{8};
  const Hashes hashes{1, 2, 3, 4, 5};
  const PrefixPath pairs{hashes, 2, 2};
  tree.extend(PrefixTree::none, pairs, 0);
  EXPECT_EQ(tree.match(path({2})).nodes, 1u);
  EXPECT_EQ(tree.match(path({4})).nodes, 1u);
  EXPECT_EQ(tree.match(path({1})).nodes, 0u);
}

// The reference is a set and a list that do the same in the plainest way.
struct Plain {
  std::map<std::uint64_t, int> uses;
  std::list<std::uint64_t> unused;  // The oldest first.

  std::size_t match(const Hashes& hashes) const {
    std::size_t matched = 0;
    while (matched < hashes.size() && uses.contains(hashes[matched])) ++matched;
    return matched;
  }
  void hold(const Hashes& hashes) {
    for (const std::uint64_t hash : hashes)
      if (uses[hash]++ == 0) unused.remove(hash);
  }
  void release(const Hashes& hashes) {
    for (std::size_t i = hashes.size(); i-- > 0;)
      if (--uses[hashes[i]] == 0) unused.push_back(hashes[i]);
  }
  void evict() {
    uses.erase(unused.front());
    unused.pop_front();
  }
};

TEST(PrefixTree, AgreesWithAListOfAllNodesOverRandomPrompts) {
  constexpr std::int64_t most = 64;
  Random random{1};
  PrefixTree tree{most};
  Plain plain;
  std::vector<std::pair<Hashes, PrefixTree::Index>> held;
  for (int round = 0; round < 20000; ++round) {
    if (!held.empty() && random.below(2) == 0) {
      const std::size_t i = static_cast<std::size_t>(random.below(held.size()));
      tree.release(held[i].second);
      plain.release(held[i].first);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      Hashes hashes;  // A way down a tree of three branches at each node.
      std::uint64_t node = 0;
      for (std::uint64_t depth = 1 + random.below(6); depth > 0; --depth)
        hashes.push_back(node = 3 * node + 1 + random.below(3));
      const PrefixTree::Match match = tree.match(path(hashes));
      ASSERT_EQ(match.nodes, plain.match(hashes));
      const auto wanted = static_cast<std::int64_t>(hashes.size() - match.nodes);
      if (tree.nodes() - tree.unused() + match.unused + wanted > most) continue;
      if (match.deepest != PrefixTree::none) tree.use(match.deepest);
      const Hashes there{hashes.begin(), hashes.begin() + static_cast<std::ptrdiff_t>(match.nodes)};
      plain.hold(there);
      while (tree.nodes() + wanted > most) {
        tree.evict();
        plain.evict();
      }
      held.push_back({hashes, tree.extend(match.deepest, path(hashes), match.nodes)});
      plain.hold({hashes.begin() + static_cast<std::ptrdiff_t>(match.nodes), hashes.end()});
    }
    ASSERT_EQ(tree.nodes(), static_cast<std::int64_t>(plain.uses.size()));
    ASSERT_EQ(tree.unused(), static_cast<std::int64_t>(plain.unused.size()));
  }
}

}  // namespace
}  // namespace orrery::prefix_tree_test
