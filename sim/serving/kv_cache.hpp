#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/serving/kv_tiers.hpp"

namespace orrery {

/// The nodes of one prompt, from the root on: every `stride`-th of its hashes, which covers the
/// tokens since the last one and all before them.
struct PrefixPath {
  std::span<const std::uint64_t> hashes;
  std::size_t stride = 1;
  std::size_t nodes = 0;
  std::uint64_t offset = 0;  ///< Added to each hash: RequestList::hash_offset().

  std::uint64_t operator[](std::size_t node) const {
    return hashes[(node + 1) * stride - 1] + offset;
  }
};

/// Beginnings of prompts whose keys and values are in the cache, as a tree of nodes. A node is
/// named by a hash of its own tokens and all before them, so that a prompt's hashes are its path
/// down the tree. Nodes in use stay, and all above them; the others are evicted in LRU order,
/// children before parents.
class PrefixTree {
 public:
  using Index = std::uint32_t;
  static constexpr Index none = 0xffffffff;

  /// `most_nodes`: the capacity, which callers never exceed.
  explicit PrefixTree(std::int64_t most_nodes);

  struct Match {
    std::size_t nodes = 0;    ///< Present nodes of the path, from the root on.
    Index deepest = none;     ///< The last of them.
    std::int64_t unused = 0;  ///< Those of them that are not in use.
  };
  Match match(const PrefixPath& path) const;
  /// Adds a use of this node, and so of all above it.
  void use(Index node);
  /// Appends the path's nodes from `from` on below `above`, whose use the caller has added, and
  /// uses them. Returns the last one.
  Index extend(Index above, const PrefixPath& path, std::size_t from);
  /// Removes a use of this node, and so of all above it.
  void release(Index node);

  std::int64_t nodes() const { return nodes_; }
  std::int64_t unused() const { return unused_; }
  /// Removes the node that was unused the longest, of which there must be one; returns its hash.
  std::uint64_t evict();

 private:
  struct Node {
    std::uint64_t hash = 0;
    Index above = none;
    std::uint32_t uses = 0;             // Requests that end here, and used children.
    Index before = none, after = none;  // Neighbours in the list of unused nodes.
  };

  std::size_t bucket_of(std::uint64_t hash) const {
    // Fibonacci hashing (Knuth, TAOCP 6.4): hashes of traces are small numbers.
    return static_cast<std::size_t>((hash * 0x9e3779b97f4a7c15u) >> shift_);
  }
  void make_buckets(std::size_t count);
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

/// Groups of layers that a block belongs to one of: a block holds the same tokens of all layers of
/// its group. Layers with a window keep those blocks of a request that its next tokens see
/// (vllm/v1/core/kv_cache_utils.py; single_type_kv_cache_manager.py, SlidingWindowManager).
struct KvGroups {
  std::int64_t whole = 1;     ///< Groups that keep all tokens.
  std::int64_t windowed = 0;  ///< Groups that keep a window.
  std::int64_t window = 0;    ///< Tokens that a token sees, with its own.
  /// Blocks that a request has for states, whatever its tokens (MambaSpec, MambaManager there).
  std::int64_t states = 0;

  /// Groups that keep tokens.
  std::int64_t all() const { return whole + windowed; }
  /// The most blocks in a windowed group of a request of which `at_once` tokens are computed at
  /// once: those see window - 1 + at_once tokens, which need not begin where a block does.
  std::int64_t most_windowed(std::int64_t at_once, std::int64_t block_tokens) const {
    return (window - 2 + at_once + block_tokens - 1) / block_tokens + 1;
  }
  /// Blocks in all groups of a request with so many in one that keeps all of them.
  std::int64_t blocks(std::int64_t in_one, std::int64_t most_windowed) const {
    return states + whole * in_one + windowed * std::min(in_one, most_windowed);
  }
  /// The most in one of them that so many in all hold.
  std::int64_t longest(std::int64_t in_all, std::int64_t most_windowed) const {
    in_all = std::max<std::int64_t>(0, in_all - states);
    if (in_all < all() * most_windowed) return in_all / all();
    return whole == 0 ? unlimited : (in_all - windowed * most_windowed) / whole;
  }
  static constexpr std::int64_t unlimited = std::int64_t{1} << 32;
};

/// A pool for the windows of requests, apart from the blocks of whole contexts. While a request
/// runs, SGLang's radix cache holds the node at the end of its prompt, which is what was computed
/// of it at once, whatever of it the window needs; of the answer, it frees what the window has
/// left, a window's tokens at a time (python/sglang/srt/mem_cache/swa_radix_cache.py, inc_lock_ref;
/// managers/schedule_batch.py, maybe_evict_swa).
struct WindowPool {
  std::int64_t tokens = 0;   ///< 0: there is no such pool.
  std::int64_t window = 0;   ///< Tokens that a token sees, with its own.
  std::int64_t at_once = 0;  ///< The most tokens of a prompt that a node has; 0: prompts go.

  /// Tokens that a request with this prompt holds: those since the last multiple of `at_once`, with
  /// the part before if they are fewer than a window; and two windows of its answer.
  std::int64_t of(std::int64_t prompt) const {
    std::int64_t node = std::min(prompt, at_once);
    if (at_once > 0 && prompt > at_once) {
      node = (prompt - 1) % at_once + 1;
      if (node < window) node += at_once;
    }
    return node + 2 * window;
  }

  /// The part of one of `batches` that share the pool. Where no prefixes are kept, no nodes are.
  WindowPool of_batch(std::int64_t batches, bool keeps_prefixes) const {
    return {tokens / batches, window, keeps_prefixes ? at_once : 0};
  }
};

/// The memory of a replica for keys and values.
struct KvShape {
  std::int64_t tokens = 0;
  std::int64_t block_tokens = 16;
  bool keeps_prefixes = false;
  /// Capacities of the memories behind the GPU's, nearest first; at most `most_tiers`.
  std::vector<std::int64_t> tiers{};
  bool copies_at_once = false;  ///< Blocks go to all of them when computed (EngineHostKv).
  /// The last of the memories is one that all replicas read and write, whose blocks are copies.
  bool shares_last = false;
  KvGroups groups{};  ///< `tokens` is what all groups together keep whole.
  WindowPool windows{};
};

/// Its blocks: free, in use by one request, or nodes of the tree of prompts that begin alike, which
/// requests share and which stay until their space is needed. Then they go to the memory behind the
/// GPU's, whose oldest go to the next one; or they are copied to all memories when they are made.
class KvBlocks {
 public:
  /// `hash_tokens`: tokens of one of the requests' hashes; 0: they have none. `shared`: the memory
  /// that KvShape::shares_last says.
  KvBlocks(const KvShape& shape, std::uint32_t hash_tokens, TierBlocks* shared = nullptr);

  std::int64_t capacity() const { return capacity_; }
  std::int64_t available() const { return free_ + tree_.unused() * node_blocks_; }
  std::int64_t used() const { return capacity_ - available(); }
  /// Blocks that a group has for so many tokens.
  std::int64_t blocks_of(std::int64_t tokens) const {
    return (tokens + block_tokens_ - 1) / block_tokens_;
  }
  /// Blocks of a request alone, behind the `nodes` of its prompt, in all groups.
  std::int64_t own_blocks(std::int64_t tokens, std::size_t nodes,
                          std::int64_t most_windowed) const {
    return groups_.blocks(own_in_one(tokens, nodes), most_windowed);
  }
  std::int64_t own_in_one(std::int64_t tokens, std::size_t nodes) const {
    return blocks_of(tokens) - static_cast<std::int64_t>(nodes) * node_in_one_;
  }
  const KvGroups& groups() const { return groups_; }
  /// Tokens of a block's share of all groups.
  double tokens_a_block() const {
    return static_cast<double>(block_tokens_) / static_cast<double>(groups_.all());
  }
  std::int64_t block_tokens() const { return block_tokens_; }
  bool keeps_prefixes() const { return node_blocks_ > 0; }

  /// Takes blocks for one request alone, at most available().
  void take(std::int64_t blocks) {
    assert(0 <= blocks && blocks <= available());
    make_free(blocks);
    free_ -= blocks;
  }
  void give(std::int64_t blocks) {
    free_ += blocks;
    assert(0 <= blocks && free_ <= capacity_);
  }

  /// Returns the whole nodes of a prompt, by its hashes. Requires keeps_prefixes().
  PrefixPath path_of(std::span<const std::uint64_t> hashes, std::int64_t prompt_tokens) const;
  struct Match : PrefixTree::Match {
    std::array<std::uint32_t, most_tiers> in_tier{};  ///< Nodes behind `nodes`, by memory,
    std::size_t below = 0;                            ///< and all of them.
    std::size_t known() const { return nodes + below; }
  };
  Match match(const PrefixPath& path) const;
  /// Tokens of a prompt that need not be computed if `matched` of its nodes are present. The last
  /// token, and its block with it, is always computed.
  std::int64_t cached_tokens(std::size_t matched, std::int64_t prompt_tokens) const;
  /// Blocks of available() that holding a path takes: nodes to make, and unused ones.
  std::int64_t cost_of(const PrefixPath& path, const Match& match) const {
    return blocks_of_nodes(path.nodes - match.nodes) + match.unused * node_blocks_;
  }
  /// The same as if only the first `below` of the nodes behind the GPU's were there.
  Match shortened(const PrefixPath& path, Match match, std::size_t below) const;
  /// The memory of a node that match() found behind the GPU's.
  std::size_t tier_of(std::uint64_t hash) const;
  /// Uses all nodes of a path, of which those behind come back; returns release()'s argument.
  PrefixTree::Index hold(const PrefixPath& path, const Match& match);
  void release(PrefixTree::Index node) { tree_.release(node); }
  std::int64_t blocks_of_nodes(std::size_t nodes) const {
    return static_cast<std::int64_t>(nodes) * node_blocks_;
  }
  std::size_t tiers() const { return tiers_.size(); }
  const TierBlocks& tier(std::size_t i) const { return *tiers_[i]; }
  std::int64_t tokens_of_nodes(std::int64_t nodes) const {
    return nodes * node_in_one_ * block_tokens_;
  }
  /// Tokens that this cache has sent to the memory.
  std::int64_t stored_tokens(std::size_t tier) const { return tokens_of_nodes(stored_[tier]); }
  /// Nodes of so many tokens, as KvBlocks makes them of this shape; 0: none.
  static std::int64_t nodes_of(const KvShape& shape, std::uint32_t hash_tokens,
                               std::int64_t tokens);

 private:
  void make_free(std::int64_t blocks);
  void put(std::size_t tier, std::uint64_t hash);

  KvGroups groups_;
  std::int64_t block_tokens_;
  std::int64_t capacity_;
  std::int64_t free_;
  std::int64_t node_blocks_ = 0;  // In all groups; 0: no prefixes are kept.
  std::int64_t node_in_one_ = 0;
  std::int64_t node_hashes_ = 1;
  PrefixTree tree_;
  std::deque<TierBlocks> own_tiers_;
  std::vector<TierBlocks*> tiers_;
  std::array<std::int64_t, most_tiers> stored_{};  // Nodes.
  bool copies_at_once_, shares_last_;
};

}  // namespace orrery
