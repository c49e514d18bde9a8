#pragma once

#include <cassert>
#include <cstdint>
#include <list>
#include <unordered_map>

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

}  // namespace orrery
