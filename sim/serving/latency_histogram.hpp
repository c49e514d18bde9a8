#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/units.hpp"

namespace orrery {

/// How often which time occurred. Counts are exact; a time is known to the bucket that it is in,
/// whose width is 1/128 of its octave, between 0.4 and 0.8 % of the time. The mean and the extremes
/// are exact.
///
/// Buckets are the leading bits of a double: no logarithm is taken, and adding up histograms gives
/// the same counts in any order.
class LatencyHistogram {
 public:
  void add(Seconds time, std::uint64_t count = 1) {
    buckets_[bucket_of(time.si())] += count;
    note(time, time, count, static_cast<double>(count) * time.si());
  }
  /// `each` times of `count` each: first, first + growth, ... (growth may not be negative).
  void add_range(Seconds first, Seconds growth, std::uint64_t each, std::uint64_t count);
  void add(const LatencyHistogram& other);

  std::uint64_t count() const { return count_; }
  Seconds sum() const { return Seconds{sum_}; }
  /// 0 of nothing.
  Seconds mean() const { return Seconds{count_ > 0 ? sum_ / static_cast<double>(count_) : 0.0}; }
  Seconds least() const { return Seconds{count_ > 0 ? least_ : 0.0}; }
  Seconds most() const { return Seconds{most_}; }
  /// The time at or below which a share of all times lies: that at place share (n - 1) of all in
  /// order, between two of them in proportion, as numpy.percentile has it, but for the width of
  /// their buckets. 0 of nothing.
  Seconds percentile(double share) const;

  /// For a process that is to add it up: the same bytes for the same times.
  std::string bytes() const;
  static LatencyHistogram of_bytes(const std::string& bytes);

 private:
  // From 2^-24 s (60 ns) to 2^40 s; what is shorter, as 0 is, is in the first bucket.
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
  void note(Seconds least, Seconds most, std::uint64_t count, double sum) {
    if (count_ == 0 || least.si() < least_) least_ = least.si();
    if (most.si() > most_) most_ = most.si();
    count_ += count;
    sum_ += sum;
  }

  std::vector<std::uint64_t> buckets_ = std::vector<std::uint64_t>(last_bucket + 1);
  std::uint64_t count_ = 0;
  double sum_ = 0.0, least_ = 0.0, most_ = 0.0;
};

}  // namespace orrery
