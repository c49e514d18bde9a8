#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace orrery {

/// The nodes of one prompt, from the root on: every `stride`-th of its hashes, which stands for the
/// tokens since the last one and for all before them.
struct PrefixWay {
  std::span<const std::uint64_t> hashes;
  std::size_t stride = 1;
  std::size_t nodes = 0;

  std::uint64_t operator[](std::size_t node) const { return hashes[(node + 1) * stride - 1]; }
};

/// Beginnings of prompts whose keys and values are in the cache, as a tree of nodes. A node is
/// named by a hash that stands for its own tokens and all before them, so that a prompt's hashes
/// are its way down the tree. Nodes in use stay, and with them all above them; of the others the
/// one that was used the longest ago goes first, a leaf before the node that it hangs from.
class PrefixTree {
 public:
  using Index = std::uint32_t;
  static constexpr Index none = 0xffffffff;

  /// Room for `most_nodes`; whoever makes nodes sees to it that there are never more.
  explicit PrefixTree(std::int64_t most_nodes);

  struct Match {
    std::size_t nodes = 0;    ///< Of the way, from the root on, that are there.
    Index deepest = none;     ///< The last of them.
    std::int64_t unused = 0;  ///< Of them, those that nobody uses.
  };
  Match match(const PrefixWay& way) const;
  /// One more uses this node, and so all above it.
  void use(Index node);
  /// Hangs the way's nodes from `from` on below `above`, which counts their use, and uses them.
  /// The last one.
  Index extend(Index above, const PrefixWay& way, std::size_t from);
  /// One fewer uses this node, and so all above it.
  void release(Index node);

  std::int64_t nodes() const { return nodes_; }
  std::int64_t unused() const { return unused_; }
  /// Removes the node that was unused the longest, of which there must be one. Its hash.
  std::uint64_t evict();

 private:
  struct Node {
    std::uint64_t hash = 0;
    Index above = none;
    std::uint32_t uses = 0;             // Requests that end here, and used nodes right below.
    Index before = none, after = none;  // In the list of the unused, the oldest first.
  };

  std::size_t bucket_of(std::uint64_t hash) const {
    // Fibonacci hashing (Knuth, TAOCP 6.4): hashes of traces are small numbers.
    return static_cast<std::size_t>((hash * 0x9e3779b97f4a7c15u) >> shift_);
  }
  Index find(std::uint64_t hash) const;
  void enter(std::uint64_t hash, Index node);
  void erase(std::uint64_t hash);
  void append_unused(Index node);
  void remove_unused(Index node);

  std::vector<Node> pool_;
  std::vector<Index> free_;     // Places in the pool.
  std::vector<Index> buckets_;  // Open addressing, linear probing.
  int shift_ = 0;
  Index oldest_ = none, newest_ = none;
  std::int64_t nodes_ = 0, unused_ = 0;
};

}  // namespace orrery
