#pragma once

#include <cassert>
#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>
#include <vector>

namespace orrery {

/// Nodes of prompts (PrefixTree) whose keys and values are in the host's memory, by their hashes.
/// The one that was put here or touched the longest ago goes first. Whoever puts and touches the
/// nodes of a prompt does so from its end on, so that none is here without those above it being
/// here or on the GPU.
class HostBlocks {
 public:
  /// Room for so many nodes; 0: there is no such memory.
  explicit HostBlocks(std::int64_t most_nodes) : most_{most_nodes} {}

  bool exists() const { return most_ > 0; }
  std::int64_t most() const { return most_; }
  std::int64_t nodes() const { return static_cast<std::int64_t>(by_hash_.size()); }
  bool has(std::uint64_t hash) const { return by_hash_.contains(hash); }

  /// Makes it the newest; true if it was not here.
  bool put(std::uint64_t hash) {
    assert(exists());
    const auto found = by_hash_.find(hash);
    if (found != by_hash_.end()) {
      ages_.splice(ages_.end(), ages_, found->second);
      return false;
    }
    if (nodes() == most_) {
      by_hash_.erase(ages_.front());
      ages_.pop_front();
      ++dropped_;
    }
    by_hash_.emplace(hash, ages_.insert(ages_.end(), hash));
    ++stored_;
    return true;
  }
  /// It must be here.
  void take(std::uint64_t hash) {
    const auto found = by_hash_.find(hash);
    assert(found != by_hash_.end());
    ages_.erase(found->second);
    by_hash_.erase(found);
    ++taken_;
  }

  /// Nodes that were ever copied here, moved away, and forgotten: those here are what is left.
  std::int64_t stored() const { return stored_; }
  std::int64_t taken() const { return taken_; }
  std::int64_t dropped() const { return dropped_; }

 private:
  std::int64_t most_;
  std::list<std::uint64_t> ages_;  // The oldest first.
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> by_hash_;
  std::int64_t stored_ = 0, taken_ = 0, dropped_ = 0;
};

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

/// The memory of a replica for keys and values.
struct KvShape {
  std::int64_t tokens = 0;
  std::int64_t block_tokens = 16;
  bool keeps_prefixes = false;
  /// Of the host's memory, which keeps prefixes that the GPU has no room for; 0: it keeps none.
  std::int64_t host_tokens = 0;
  bool copies_at_once = false;  ///< They go there when they are computed (EngineHostKv).
};

/// Its blocks: free, in use by one request, or nodes of the tree of prompts that begin alike, which
/// requests share and which stay until their place is needed. Then, or when they are made, they go
/// to the host's memory, if there is such.
class KvBlocks {
 public:
  /// `hash_tokens`: of the requests' hashes; 0: they have none.
  KvBlocks(const KvShape& shape, std::uint32_t hash_tokens);

  std::int64_t capacity() const { return capacity_; }
  std::int64_t available() const { return free_ + tree_.unused() * node_blocks_; }
  std::int64_t used() const { return capacity_ - available(); }
  std::int64_t blocks_of(std::int64_t tokens) const {
    return (tokens + block_tokens_ - 1) / block_tokens_;
  }
  std::int64_t block_tokens() const { return block_tokens_; }
  bool keeps_prefixes() const { return node_blocks_ > 0; }

  /// Blocks for one request alone, at most available().
  void take(std::int64_t blocks) {
    assert(0 <= blocks && blocks <= available());
    make_free(blocks);
    free_ -= blocks;
  }
  void give(std::int64_t blocks) {
    free_ += blocks;
    assert(0 <= blocks && free_ <= capacity_);
  }

  /// The whole nodes of a prompt, by its hashes. Only where prefixes are kept.
  PrefixWay way_of(std::span<const std::uint64_t> hashes, std::int64_t prompt_tokens) const;
  struct Match : PrefixTree::Match {
    std::size_t host_nodes = 0;  ///< Behind `nodes`: those that are in the host's memory.
  };
  Match match(const PrefixWay& way) const;
  /// Tokens of a prompt that need not be computed where so many of its nodes are there. The last
  /// token always is, and its block with it.
  std::int64_t cached_tokens(std::size_t matched, std::int64_t prompt_tokens) const;
  /// Blocks that holding a way takes from available(): nodes to make, and unused ones.
  std::int64_t cost_of(const PrefixWay& way, const Match& match) const {
    return blocks_of_nodes(way.nodes - match.nodes) + match.unused * node_blocks_;
  }
  /// Uses all nodes of a way; what release() is to be called with. Those of the host come back.
  PrefixTree::Index hold(const PrefixWay& way, const Match& match);
  void release(PrefixTree::Index node) { tree_.release(node); }
  std::int64_t blocks_of_nodes(std::size_t nodes) const {
    return static_cast<std::int64_t>(nodes) * node_blocks_;
  }
  const HostBlocks& host() const { return host_; }
  std::int64_t host_stored_tokens() const { return host_.stored() * node_blocks_ * block_tokens_; }

 private:
  void make_free(std::int64_t blocks);

  std::int64_t capacity_;
  std::int64_t block_tokens_;
  std::int64_t free_;
  std::int64_t node_blocks_ = 0;  // 0: no prefixes are kept.
  std::int64_t node_hashes_ = 1;
  PrefixTree tree_;
  HostBlocks host_;
  bool copies_at_once_;
};

}  // namespace orrery
