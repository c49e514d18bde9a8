#pragma once

#include <cassert>
#include <cstdint>
#include <span>

#include "sim/serving/host_blocks.hpp"
#include "sim/serving/prefix_tree.hpp"

namespace orrery {

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
