#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/units.hpp"
#include "sim/serving/kv_cache.hpp"
#include "sim/serving/request.hpp"

namespace orrery {

/// A histogram of times. Counts are exact; a time is known to the bucket that it is in, whose width
/// is 1/128 of its octave, between 0.4 and 0.8 % of the time. The mean and the extremes are exact.
///
/// Buckets are the leading bits of a double: no logarithm is taken, and adding up histograms gives
/// the same counts in any order.
class LatencyHistogram {
 public:
  void add(Seconds time, std::uint64_t count = 1) {
    count_in(bucket_of(time.si())) += count;
    note(time, time, count, static_cast<double>(count) * time.si());
  }
  /// Adds `each` times of `count` each: first, first + growth, ... (growth may not be negative).
  void add_range(Seconds first, Seconds growth, std::uint64_t each, std::uint64_t count);
  void add(const LatencyHistogram& other);

  std::uint64_t count() const { return count_; }
  Seconds sum() const { return Seconds{sum_}; }
  /// The mean; 0 if the histogram is empty.
  Seconds mean() const { return Seconds{count_ > 0 ? sum_ / static_cast<double>(count_) : 0.0}; }
  Seconds least() const { return Seconds{count_ > 0 ? least_ : 0.0}; }
  Seconds most() const { return Seconds{most_}; }
  /// The time at or below which a share of all times lies: that at place share (n - 1) of all in
  /// order, between two of them in proportion, as numpy.percentile has it, but for the width of
  /// their buckets. 0 if the histogram is empty.
  Seconds percentile(double share) const;

  /// Serialises it for another process, which adds it up: the same bytes for the same times.
  std::string bytes() const;
  static LatencyHistogram of_bytes(const std::string& bytes);

 private:
  // Buckets go from 2^-24 s (60 ns) to 2^40 s; shorter times, and 0, are in the first one.
  static constexpr int digits = 7;
  static constexpr int least_octave = -24;
  static constexpr int most_octave = 40;
  static constexpr std::uint64_t first_bits = static_cast<std::uint64_t>(1023 + least_octave)
                                              << digits;
  static constexpr std::size_t last_bucket = static_cast<std::size_t>(most_octave - least_octave)
                                             << digits;

  static std::size_t bucket_of(double time) {
    const std::uint64_t bits = std::bit_cast<std::uint64_t>(time) >> (52 - digits);
    if (!(time > 0.0) || bits < first_bits) return 0;
    const std::uint64_t bucket = bits - first_bits + 1;
    return bucket < last_bucket ? static_cast<std::size_t>(bucket) : last_bucket;
  }
  static double lower_edge(std::size_t bucket) {
    return bucket == 0 ? 0.0 : std::bit_cast<double>((bucket - 1 + first_bits) << (52 - digits));
  }
  double at_rank(std::uint64_t rank) const;
  std::uint64_t& count_in(std::size_t bucket) {
    if (bucket - first_ >= buckets_.size()) widen(bucket);
    return buckets_[bucket - first_];
  }
  void widen(std::size_t bucket);
  void note(Seconds least, Seconds most, std::uint64_t count, double sum) {
    if (count_ == 0 || least.si() < least_) least_ = least.si();
    if (most.si() > most_) most_ = most.si();
    count_ += count;
    sum_ += sum;
  }

  // Buckets of the octaves between the shortest and the longest time, from `first_` on: each of a
  // fleet's thousands of replicas has several histograms.
  std::vector<std::uint64_t> buckets_;
  std::size_t first_ = 0;
  std::uint64_t count_ = 0;
  double sum_ = 0.0, least_ = 0.0, most_ = 0.0;
};

/// Times of one finished request.
struct RequestTimes {
  std::uint32_t request = 0;
  Seconds arrival;  ///< Sending time.
  Seconds queue;    ///< Wait until it was first in an iteration.
  Seconds ttft;     ///< Time to its first token.
  Seconds tpot;     ///< (e2e - ttft) / (output - 1); 0 for one token.
  Seconds e2e;
  /// Tokens of its prompt that were found, and of them those in each memory behind the GPU's.
  std::uint32_t prefix_hits = 0;
  std::array<std::uint32_t, most_tiers> tier_hits{};
  std::uint32_t preemptions = 0;
};

/// Sums over a replay.
struct ReplayTotals {
  std::int64_t arrived = 0, finished = 0;  ///< Requests.
  std::int64_t within_slo = 0;
  std::int64_t prompt_tokens = 0, output_tokens = 0, prefix_hit_tokens = 0;  ///< Finished.
  /// Of each memory behind the GPU's: those of prefix_hit_tokens that came from it; tokens that
  /// came from it and that went there, also for preempted requests.
  struct Tier {
    std::int64_t hit_tokens = 0, loaded_tokens = 0, stored_tokens = 0;
  };
  std::array<Tier, most_tiers> tiers{};
  std::int64_t preemptions = 0;
  std::int64_t events = 0;        ///< Changes of a batch.
  std::int64_t iterations = 0;    ///< Steps of a GPU.
  std::int64_t decode_steps = 0;  ///< Those in which requests decode,
  std::int64_t slot_steps = 0;    ///< and their requests, with slots that are only padding.
  Seconds first_arrival{1e300}, last_arrival, end;
  Seconds busy;          ///< Time in iterations.
  Seconds decode_time;   ///< Time in those in which requests decode.
  Seconds present;       ///< Integral of the number of present requests.
  Seconds stayed;        ///< Sum of the times for which finished requests were present.
  Seconds kv_used;       ///< Integral of the share of blocks in use, over the busy time.
  double kv_peak = 0.0;  ///< Largest share of blocks in use.
  /// Requests that waited when one arrived, by the quarter of the requests that it was in.
  std::array<std::int64_t, 4> waiting_seen{}, arrived_of{};

  /// Share of blocks in use, over the busy time.
  double mean_kv_share() const { return busy > Seconds{} ? kv_used / busy : 0.0; }
  /// Shares of the prompts' tokens.
  double prefix_hit_share() const { return share_of_prompts(prefix_hit_tokens); }
  double tier_hit_share(std::size_t tier) const { return share_of_prompts(tiers[tier].hit_tokens); }
  /// Tokens that came from all memories behind the GPU's.
  std::int64_t loaded_tokens() const {
    std::int64_t sum = 0;
    for (const Tier& tier : tiers) sum += tier.loaded_tokens;
    return sum;
  }

 private:
  double share_of_prompts(std::int64_t tokens) const {
    return prompt_tokens > 0 ? static_cast<double>(tokens) / static_cast<double>(prompt_tokens)
                             : 0.0;
  }
};

/// Counts of a replay, of one replica or of several added up. Sums of seconds depend on the order
/// of addition, which is that of the replicas, whatever process replayed them.
struct ReplayCounts {
  LatencyHistogram ttft, tpot, itl, e2e, queue;
  ReplayTotals totals;

  void finish(const RequestTimes& times, std::uint32_t prompt, std::uint32_t output,
              const std::optional<Slo>& slo);
  void add(const ReplayCounts& other);
  /// Forgets what finish() has counted.
  void forget_finished();
  /// The queue grows through the run: requests of the last quarter found half as many again waiting
  /// as those of the second, more than a hundredth of all, and more than come by chance.
  bool saturated() const;

  std::string bytes() const;
  static ReplayCounts of_bytes(const std::string& bytes);
};

}  // namespace orrery
