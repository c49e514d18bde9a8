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

std::int64_t KvBlocks::nodes_of(const KvShape& shape, std::uint32_t hash_tokens,
                                std::int64_t tokens) {
  const std::int64_t node = node_tokens_of(shape, hash_tokens);
  return node > 0 ? tokens / node : 0;
}

KvBlocks::KvBlocks(const KvShape& shape, std::uint32_t hash_tokens, TierBlocks* shared)
    : groups_{shape.groups},
      block_tokens_{shape.block_tokens},
      capacity_{shape.tokens / shape.block_tokens * shape.groups.all()},
      free_{capacity_},
      tree_{nodes_of(shape, hash_tokens, shape.tokens)},
      copies_at_once_{shape.copies_at_once},
      shares_last_{shape.shares_last} {
  assert(shape.tiers.size() <= most_tiers && (shared != nullptr || !shape.shares_last));
  const std::int64_t tokens = node_tokens_of(shape, hash_tokens);
  if (tokens == 0) return;
  node_in_one_ = tokens / block_tokens_;
  // States at its end are kept with it, since a prefix without them cannot be continued.
  node_blocks_ = node_in_one_ * groups_.all() + groups_.states;
  node_hashes_ = tokens / hash_tokens;
  for (std::size_t i = 0; i < shape.tiers.size(); ++i) {
    const bool is_shared = shape.shares_last && i + 1 == shape.tiers.size();
    if (!is_shared) own_tiers_.emplace_back(nodes_of(shape, hash_tokens, shape.tiers[i]));
    tiers_.push_back(is_shared ? shared : &own_tiers_.back());
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

std::size_t KvBlocks::tier_of(std::uint64_t hash) const {
  std::size_t tier = 0;
  while (tier < tiers_.size() && !tiers_[tier]->has(hash)) ++tier;
  return tier;
}

// Nodes above one behind the GPU's memory are there, too, or on the GPU.
KvBlocks::Match KvBlocks::match(const PrefixPath& path) const {
  Match match{tree_.match(path)};
  if (tiers_.empty()) return match;
  for (std::size_t node = match.nodes; node < path.nodes; ++node) {
    const std::size_t tier = tier_of(path[node]);
    if (tier == tiers_.size()) break;
    ++match.in_tier[tier];
    ++match.below;
  }
  return match;
}

KvBlocks::Match KvBlocks::shortened(const PrefixPath& path, Match match, std::size_t below) const {
  for (; match.below > below; --match.below)
    --match.in_tier[tier_of(path[match.nodes + match.below - 1])];
  return match;
}

void KvBlocks::put(std::size_t tier, std::uint64_t hash) {
  const std::int64_t before = tiers_[tier]->stored();
  const std::optional<std::uint64_t> evicted = tiers_[tier]->put(hash);
  stored_[tier] += tiers_[tier]->stored() - before;
  if (evicted && !copies_at_once_ && tier + 1 < tiers_.size()) put(tier + 1, *evicted);
}

PrefixTree::Index KvBlocks::hold(const PrefixPath& path, const Match& match) {
  if (copies_at_once_) {
    for (std::size_t node = path.nodes; node > 0 && !tiers_.empty(); --node)
      for (std::size_t tier = 0; tier < tiers_.size(); ++tier) put(tier, path[node - 1]);
  } else {
    // Nodes that come back leave their memory before others go there.
    for (std::size_t node = match.nodes; node < match.known(); ++node) {
      const std::size_t tier = tier_of(path[node]);
      const bool stays = shares_last_ && tier + 1 == tiers_.size();
      if (!stays) tiers_[tier]->take(path[node]);
    }
  }
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
    if (!tiers_.empty() && !copies_at_once_) put(0, hash);
  }
  free_ += nodes * node_blocks_;
}

}  // namespace orrery
