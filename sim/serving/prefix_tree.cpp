#include "sim/serving/prefix_tree.hpp"

#include <bit>
#include <cassert>

namespace orrery {

PrefixTree::PrefixTree(std::int64_t most_nodes) {
  // At most half of the buckets are full, so that a search is short.
  const std::size_t buckets =
      std::bit_ceil(static_cast<std::size_t>(most_nodes < 4 ? 4 : most_nodes) * 2);
  buckets_.assign(buckets, none);
  shift_ = 64 - std::countr_zero(buckets);
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

// Those behind a gap that could stand in it move up (Knuth, TAOCP 6.4, algorithm R).
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

// Whoever is there has all above it there: how far a way goes is found by halving.
PrefixTree::Match PrefixTree::match(const PrefixWay& way) const {
  Match match;
  std::size_t absent = way.nodes + 1;  // Counted from 1, as `match.nodes` is.
  // Most ways are there to their end, or not at all.
  for (std::size_t at = way.nodes; match.nodes + 1 < absent;
       at = match.nodes + (absent - match.nodes) / 2) {
    const Index node = find(way[at - 1]);
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

PrefixTree::Index PrefixTree::extend(Index above, const PrefixWay& way, std::size_t from) {
  for (std::size_t i = from; i < way.nodes; ++i) {
    if (free_.empty()) {
      free_.push_back(static_cast<Index>(pool_.size()));
      pool_.emplace_back();
    }
    const Index node = free_.back();
    free_.pop_back();
    pool_[node] = {.hash = way[i], .above = above, .uses = 1};
    enter(way[i], node);
    above = node;
    ++nodes_;
    assert(static_cast<std::size_t>(nodes_) * 2 <= buckets_.size());
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

}  // namespace orrery
