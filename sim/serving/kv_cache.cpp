#include "sim/serving/kv_cache.hpp"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>
#include <utility>

namespace orrery {

PrefixTree::PrefixTree(std::int64_t most_nodes) {
  // Fleets have thousands of caches, most of which are far from full: tables grow with their nodes.
  constexpr std::int64_t first = 1024;
  make_buckets(
      std::bit_ceil(2 * static_cast<std::size_t>(std::clamp(most_nodes, std::int64_t{4}, first))));
}

void PrefixTree::make_buckets(std::size_t count) {
  const std::vector<Index> before = std::exchange(buckets_, std::vector<Index>(count, none));
  shift_ = 64 - std::countr_zero(count);
  for (const Index node : before)
    if (node != none) enter(pool_[node].hash, node);
}

PrefixTree::Index PrefixTree::find(std::uint64_t hash) const {
  for (std::size_t at = bucket_of(hash);; at = (at + 1) & (buckets_.size() - 1)) {
    const Index node = buckets_[at];
    if (node == none || pool_[node].hash == hash) return node;
  }
}

void PrefixTree::enter(std::uint64_t hash, Index node) {
  std::size_t at = bucket_of(hash);
  while (buckets_[at] != none) at = (at + 1) & (buckets_.size() - 1);
  buckets_[at] = node;
}

// Entries behind a gap that could stand in it move up (Knuth, TAOCP 6.4, algorithm R).
void PrefixTree::erase(std::uint64_t hash) {
  const std::size_t mask = buckets_.size() - 1;
  std::size_t gap = bucket_of(hash);
  while (pool_[buckets_[gap]].hash != hash) gap = (gap + 1) & mask;
  for (std::size_t at = (gap + 1) & mask; buckets_[at] != none; at = (at + 1) & mask) {
    const std::size_t home = bucket_of(pool_[buckets_[at]].hash);
    if (((at - home) & mask) >= ((at - gap) & mask)) {
      buckets_[gap] = buckets_[at];
      gap = at;
    }
  }
  buckets_[gap] = none;
}

void PrefixTree::append_unused(Index node) {
  pool_[node].before = newest_;
  pool_[node].after = none;
  (newest_ == none ? oldest_ : pool_[newest_].after) = node;
  newest_ = node;
  ++unused_;
}

void PrefixTree::remove_unused(Index node) {
  const Node& of = pool_[node];
  (of.before == none ? oldest_ : pool_[of.before].after) = of.after;
  (of.after == none ? newest_ : pool_[of.after].before) = of.before;
  --unused_;
}

// Nodes above a present one are present: bisection finds how far a path goes.
PrefixTree::Match PrefixTree::match(const PrefixPath& path) const {
  Match match;
  std::size_t absent = path.nodes + 1;  // Counted from 1, as `match.nodes` is.
  // Most paths are present to their end, or not at all.
  for (std::size_t at = path.nodes; match.nodes + 1 < absent;
       at = match.nodes + (absent - match.nodes) / 2) {
    const Index node = find(path[at - 1]);
    if (node == none) {
      absent = at;
    } else {
      match.nodes = at;
      match.deepest = node;
    }
  }
  for (Index node = match.deepest; node != none && pool_[node].uses == 0; node = pool_[node].above)
    ++match.unused;
  return match;
}

void PrefixTree::use(Index node) {
  while (node != none) {
    if (pool_[node].uses++ > 0) return;
    remove_unused(node);
    node = pool_[node].above;
  }
}

PrefixTree::Index PrefixTree::extend(Index above, const PrefixPath& path, std::size_t from) {
  for (std::size_t i = from; i < path.nodes; ++i) {
    if (free_.empty()) {
      free_.push_back(static_cast<Index>(pool_.size()));
      pool_.emplace_back();
    }
    const Index node = free_.back();
    free_.pop_back();
    pool_[node] = {.hash = path[i], .above = above, .uses = 1};
    ++nodes_;
    // Half of the buckets at most are full, so that a search is short.
    if (static_cast<std::size_t>(nodes_) * 2 > buckets_.size()) make_buckets(2 * buckets_.size());
    enter(path[i], node);
    above = node;
  }
  return above;
}

// The last node becomes unused before those above it, and is evicted before them.
void PrefixTree::release(Index node) {
  while (node != none) {
    assert(pool_[node].uses > 0);
    if (--pool_[node].uses > 0) return;
    append_unused(node);
    node = pool_[node].above;
  }
}

std::uint64_t PrefixTree::evict() {
  assert(unused_ > 0);
  const Index node = oldest_;
  const std::uint64_t hash = pool_[node].hash;
  remove_unused(node);
  erase(hash);
  free_.push_back(node);
  --nodes_;
  return hash;
}

namespace {

std::int64_t node_tokens_of(const KvShape& shape, std::uint32_t hash_tokens) {
  return shape.keeps_prefixes && hash_tokens > 0
             ? std::lcm(static_cast<std::int64_t>(hash_tokens), shape.block_tokens)
             : 0;
}

}  // namespace

KvBlocks::KvBlocks(const KvShape& shape, std::uint32_t hash_tokens)
    : groups_{shape.groups},
      block_tokens_{shape.block_tokens},
      capacity_{shape.tokens / shape.block_tokens * shape.groups.all()},
      free_{capacity_},
      tree_{node_tokens_of(shape, hash_tokens) > 0
                ? shape.tokens / node_tokens_of(shape, hash_tokens)
                : 0},
      host_{node_tokens_of(shape, hash_tokens) > 0
                ? shape.host_tokens / node_tokens_of(shape, hash_tokens)
                : 0},
      copies_at_once_{shape.copies_at_once} {
  if (const std::int64_t tokens = node_tokens_of(shape, hash_tokens)) {
    node_in_one_ = tokens / block_tokens_;
    // States at its end are kept with it, since a prefix without them cannot be continued.
    node_blocks_ = node_in_one_ * groups_.all() + groups_.states;
    node_hashes_ = tokens / hash_tokens;
  }
}

PrefixPath KvBlocks::path_of(std::span<const std::uint64_t> hashes,
                             std::int64_t prompt_tokens) const {
  const std::int64_t nodes = std::min(static_cast<std::int64_t>(hashes.size()) / node_hashes_,
                                      prompt_tokens / tokens_of_nodes(1));
  return {hashes, static_cast<std::size_t>(node_hashes_), static_cast<std::size_t>(nodes), 0};
}

// The result counts blocks: a node may be many blocks, of which only the last is computed again.
std::int64_t KvBlocks::cached_tokens(std::size_t matched, std::int64_t prompt_tokens) const {
  return std::min(tokens_of_nodes(static_cast<std::int64_t>(matched)),
                  (prompt_tokens - 1) / block_tokens_ * block_tokens_);
}

// Nodes above one on the host are on the host or the GPU.
KvBlocks::Match KvBlocks::match(const PrefixPath& path) const {
  Match match{tree_.match(path)};
  if (!host_.exists()) return match;
  for (std::size_t node = match.nodes; node < path.nodes && host_.has(path[node]); ++node)
    ++match.host_nodes;
  return match;
}

PrefixTree::Index KvBlocks::hold(const PrefixPath& path, const Match& match) {
  // Nodes that come back leave the host before others go there.
  if (!copies_at_once_)
    for (std::size_t node = match.nodes; node < match.nodes + match.host_nodes; ++node)
      host_.take(path[node]);
  if (copies_at_once_ && host_.exists())
    for (std::size_t node = path.nodes; node > 0; --node) host_.put(path[node - 1]);
  // Present nodes are used first, so that they are not evicted for the others.
  if (match.deepest != PrefixTree::none) tree_.use(match.deepest);
  if (match.nodes == path.nodes) return match.deepest;
  const std::int64_t blocks = blocks_of_nodes(path.nodes - match.nodes);
  make_free(blocks);
  free_ -= blocks;
  return tree_.extend(match.deepest, path, match.nodes);
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
