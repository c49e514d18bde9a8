#include "sim/work/replay/kv_blocks.hpp"

#include <algorithm>
#include <numeric>

namespace orrery {
namespace {

std::int64_t node_tokens_of(const KvShape& shape, std::uint32_t hash_tokens) {
  return shape.keeps_prefixes && hash_tokens > 0
             ? std::lcm(static_cast<std::int64_t>(hash_tokens), shape.block_tokens)
             : 0;
}

}  // namespace

KvBlocks::KvBlocks(const KvShape& shape, std::uint32_t hash_tokens)
    : capacity_{shape.tokens / shape.block_tokens},
      block_tokens_{shape.block_tokens},
      free_{capacity_},
      tree_{node_tokens_of(shape, hash_tokens) > 0
                ? shape.tokens / node_tokens_of(shape, hash_tokens)
                : 0} {
  if (const std::int64_t tokens = node_tokens_of(shape, hash_tokens)) {
    node_blocks_ = tokens / block_tokens_;
    node_hashes_ = tokens / hash_tokens;
  }
}

PrefixWay KvBlocks::way_of(std::span<const std::uint64_t> hashes,
                           std::int64_t prompt_tokens) const {
  const std::int64_t nodes = std::min(static_cast<std::int64_t>(hashes.size()) / node_hashes_,
                                      prompt_tokens / (node_blocks_ * block_tokens_));
  return {hashes, static_cast<std::size_t>(node_hashes_), static_cast<std::size_t>(nodes)};
}

// Blocks, not nodes: a node may be many blocks, of which only the last is computed again.
std::int64_t KvBlocks::cached_tokens(std::size_t matched, std::int64_t prompt_tokens) const {
  return std::min(blocks_of_nodes(matched) * block_tokens_,
                  (prompt_tokens - 1) / block_tokens_ * block_tokens_);
}

PrefixTree::Index KvBlocks::hold(const PrefixWay& way, const PrefixTree::Match& match) {
  // What is there is used first, so that it is not evicted for the rest.
  if (match.deepest != PrefixTree::none) tree_.use(match.deepest);
  if (match.nodes == way.nodes) return match.deepest;
  const std::int64_t blocks = blocks_of_nodes(way.nodes - match.nodes);
  make_free(blocks);
  free_ -= blocks;
  return tree_.extend(match.deepest, way, match.nodes);
}

void KvBlocks::make_free(std::int64_t blocks) {
  if (blocks <= free_) return;
  const std::int64_t nodes = (blocks - free_ + node_blocks_ - 1) / node_blocks_;
  tree_.evict(nodes);
  free_ += nodes * node_blocks_;
}

}  // namespace orrery
