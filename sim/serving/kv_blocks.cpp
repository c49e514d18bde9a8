#include "sim/serving/kv_blocks.hpp"

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
                : 0},
      host_{node_tokens_of(shape, hash_tokens) > 0
                ? shape.host_tokens / node_tokens_of(shape, hash_tokens)
                : 0},
      copies_at_once_{shape.copies_at_once} {
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

// On the host as on the GPU, whoever is there has all above it in one of both.
KvBlocks::Match KvBlocks::match(const PrefixWay& way) const {
  Match match{tree_.match(way)};
  if (!host_.exists()) return match;
  for (std::size_t node = match.nodes; node < way.nodes && host_.has(way[node]); ++node)
    ++match.host_nodes;
  return match;
}

PrefixTree::Index KvBlocks::hold(const PrefixWay& way, const Match& match) {
  // Those that come back leave the host before others go there.
  if (!copies_at_once_)
    for (std::size_t node = match.nodes; node < match.nodes + match.host_nodes; ++node)
      host_.take(way[node]);
  if (copies_at_once_ && host_.exists())
    for (std::size_t node = way.nodes; node > 0; --node) host_.put(way[node - 1]);
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
  for (std::int64_t node = 0; node < nodes; ++node) {
    const std::uint64_t hash = tree_.evict();
    if (host_.exists() && !copies_at_once_) host_.put(hash);
  }
  free_ += nodes * node_blocks_;
}

}  // namespace orrery
