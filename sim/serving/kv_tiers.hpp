#pragma once

#include <cassert>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/core/error.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// Memories behind the GPU's, nearest first: the host's, an NVMe drive, a store of all replicas.
inline constexpr std::size_t most_tiers = 3;

enum class TierKind {
  nvme,   ///< The drives of a node, of which each GPU has its part.
  remote  ///< One store of all replicas, which they reach by their NICs.
};
template <>
inline const std::vector<std::string> enum_words<TierKind>{"nvme", "remote"};

/// A memory for keys and values behind the host's.
struct KvTier {
  TierKind kind = TierKind::nvme;
  Bytes size;           ///< Of a node's drives, or of the whole store.
  BytesPerSecond rate;  ///< Of all reads of them; 0: the store is as fast as the NICs.
  Seconds latency;      ///< Of a read.

  bool operator==(const KvTier&) const = default;
};

/// The latency of a read from a remote store, if none is stated: that of transfers between nodes
/// (workloads/engines/vllm.json, pools, network_latency).
inline constexpr Seconds usual_remote_latency{0.45e-3};

/// Reads "nvme:4TB@7GB/s", "remote:1TB@20GB/s@2ms" or both with a "+" between them; "none": no
/// tier. Errors (bad_input): another kind, one twice, a drive before which there is a store, a
/// drive without a rate, a size or rate that is none.
std::vector<KvTier> parse_kv_tiers(const std::string& text, const Place& at);
/// The same text.
std::string kv_tiers_text(const std::vector<KvTier>& tiers);

/// Nodes of prompts (PrefixTree) whose keys and values are in one of those memories, by their
/// hashes, evicted in LRU order. Callers put and touch the nodes of a prompt from its end on, so
/// that those above a node here are all here or in a nearer memory.
class TierBlocks {
 public:
  /// `most_nodes`: the capacity; 0: there is no such memory.
  explicit TierBlocks(std::int64_t most_nodes) : most_{most_nodes} {}

  std::int64_t most() const { return most_; }
  std::int64_t nodes() const { return static_cast<std::int64_t>(by_hash_.size()); }
  bool has(std::uint64_t hash) const { return by_hash_.contains(hash); }

  /// Makes `hash` the newest. Returns the node that was evicted for it.
  std::optional<std::uint64_t> put(std::uint64_t hash) {
    const auto found = by_hash_.find(hash);
    if (found != by_hash_.end()) {
      ages_.splice(ages_.end(), ages_, found->second);
      return std::nullopt;
    }
    if (most_ == 0) return hash;
    std::optional<std::uint64_t> evicted;
    if (nodes() == most_) {
      evicted = ages_.front();
      by_hash_.erase(ages_.front());
      ages_.pop_front();
      ++dropped_;
    }
    by_hash_.emplace(hash, ages_.insert(ages_.end(), hash));
    ++stored_;
    return evicted;
  }
  /// Removes `hash`, which must be here.
  void take(std::uint64_t hash) {
    const auto found = by_hash_.find(hash);
    assert(found != by_hash_.end());
    ages_.erase(found->second);
    by_hash_.erase(found);
    ++taken_;
  }

  /// Counts of nodes that were copied here, moved away, and evicted; nodes() is what is left.
  std::int64_t stored() const { return stored_; }
  std::int64_t taken() const { return taken_; }
  std::int64_t dropped() const { return dropped_; }

 private:
  std::int64_t most_;
  std::list<std::uint64_t> ages_;  // The oldest is first.
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> by_hash_;
  std::int64_t stored_ = 0, taken_ = 0, dropped_ = 0;
};

}  // namespace orrery
