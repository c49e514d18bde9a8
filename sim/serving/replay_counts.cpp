#include "sim/serving/replay_counts.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace orrery {

void LatencyHistogram::widen(std::size_t bucket) {
  constexpr std::size_t octave = std::size_t{1} << digits;
  const std::size_t begin = bucket / octave * octave;
  const std::size_t first = buckets_.empty() ? begin : std::min(first_, begin);
  const std::size_t end =
      buckets_.empty() ? begin + octave : std::max(first_ + buckets_.size(), begin + octave);
  std::vector<std::uint64_t> wider(end - first);
  if (!buckets_.empty())
    std::copy(buckets_.begin(), buckets_.end(),
              wider.begin() + static_cast<std::ptrdiff_t>(first_ - first));
  first_ = first;
  buckets_ = std::move(wider);
}

void LatencyHistogram::add_range(Seconds first, Seconds growth, std::uint64_t each,
                                 std::uint64_t count) {
  if (each == 0 || count == 0) return;
  const auto times = static_cast<double>(each);
  const double a = first.si(), d = growth.si();
  const double last = a + (times - 1.0) * d;
  const std::size_t last_of_range = bucket_of(last);
  std::uint64_t below = 0;  // Times in the buckets passed so far.
  for (std::size_t bucket = bucket_of(a); bucket < last_of_range; ++bucket) {
    // The first time j that reaches the upper edge: a + j d >= edge.
    const double steps = std::ceil((lower_edge(bucket + 1) - a) / d);
    const auto passed = static_cast<std::uint64_t>(std::clamp(steps, 0.0, times));
    if (passed > below) {
      count_in(bucket) += (passed - below) * count;
      below = passed;
    }
  }
  count_in(last_of_range) += (each - below) * count;
  note(first, Seconds{last}, each * count,
       static_cast<double>(count) * (times * a + 0.5 * d * times * (times - 1.0)));
}

void LatencyHistogram::add(const LatencyHistogram& other) {
  if (other.count_ == 0) return;
  for (std::size_t i = 0; i < other.buckets_.size(); ++i)
    if (other.buckets_[i] > 0) count_in(other.first_ + i) += other.buckets_[i];
  note(Seconds{other.least_}, Seconds{other.most_}, other.count_, other.sum_);
}

// Returns the k-th time in order, from 0, as if those of a bucket lay evenly in it.
double LatencyHistogram::at_rank(std::uint64_t rank) const {
  if (rank == 0) return least_;
  if (rank + 1 >= count_) return most_;
  std::uint64_t before = 0;
  std::size_t i = 0;
  while (rank >= before + buckets_[i]) before += buckets_[i++];
  const std::size_t bucket = first_ + i;
  const double low = lower_edge(bucket);
  const double high = bucket < last_bucket ? lower_edge(bucket + 1) : most_;
  const double place =
      (static_cast<double>(rank - before) + 0.5) / static_cast<double>(buckets_[i]);
  return std::clamp(low + (high - low) * place, least_, most_);
}

Seconds LatencyHistogram::percentile(double share) const {
  if (count_ == 0) return Seconds{};
  const double place = share * static_cast<double>(count_ - 1);
  const auto rank = static_cast<std::uint64_t>(place);
  const double low = at_rank(rank);
  return Seconds{low + (place - static_cast<double>(rank)) * (at_rank(rank + 1) - low)};
}

std::string LatencyHistogram::bytes() const {
  std::string bytes;
  const auto put = [&](const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  };
  put(&count_, sizeof count_);
  for (const double* figure : {&sum_, &least_, &most_}) put(figure, sizeof *figure);
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    if (buckets_[i] > 0) {
      const auto bucket = static_cast<std::uint32_t>(first_ + i);
      put(&bucket, sizeof bucket);
      put(&buckets_[i], sizeof buckets_[i]);
    }
  return bytes;
}

LatencyHistogram LatencyHistogram::of_bytes(const std::string& bytes) {
  LatencyHistogram histogram;
  std::size_t at = 0;
  const auto get = [&](void* data, std::size_t size) {
    assert(at + size <= bytes.size());
    std::memcpy(data, bytes.data() + at, size);
    at += size;
  };
  get(&histogram.count_, sizeof histogram.count_);
  for (double* figure : {&histogram.sum_, &histogram.least_, &histogram.most_})
    get(figure, sizeof *figure);
  while (at < bytes.size()) {
    std::uint32_t bucket = 0;
    get(&bucket, sizeof bucket);
    assert(bucket <= last_bucket);
    get(&histogram.count_in(bucket), sizeof(std::uint64_t));
  }
  return histogram;
}

namespace {

// The histograms in the order in which they are written.
template <class Counts>
auto histograms(Counts& counts) {
  return std::array{&counts.ttft, &counts.tpot, &counts.itl, &counts.e2e, &counts.queue};
}

static_assert(std::is_trivially_copyable_v<ReplayTotals>);

}  // namespace

void ReplayCounts::finish(const RequestTimes& times, std::uint32_t prompt, std::uint32_t output,
                          const std::optional<Slo>& slo) {
  ttft.add(times.ttft);
  e2e.add(times.e2e);
  queue.add(times.queue);
  if (output > 1) tpot.add(times.tpot);
  ++totals.finished;
  totals.within_slo += !slo || slo->met(times.ttft, times.tpot, times.e2e) ? 1 : 0;
  totals.prompt_tokens += prompt;
  totals.output_tokens += output;
  totals.prefix_hit_tokens += times.prefix_hits;
  for (std::size_t tier = 0; tier < most_tiers; ++tier)
    totals.tiers[tier].hit_tokens += times.tier_hits[tier];
}

void ReplayCounts::forget_finished() {
  ttft = tpot = e2e = queue = {};
  totals.finished = totals.within_slo = 0;
  totals.prompt_tokens = totals.output_tokens = totals.prefix_hit_tokens = 0;
  for (ReplayTotals::Tier& tier : totals.tiers) tier.hit_tokens = 0;
}

void ReplayCounts::add(const ReplayCounts& other) {
  const auto ours = histograms(*this);
  const auto theirs = histograms(other);
  for (std::size_t i = 0; i < ours.size(); ++i) ours[i]->add(*theirs[i]);
  ReplayTotals& to = totals;
  const ReplayTotals& of = other.totals;
  for (std::int64_t ReplayTotals::*sum :
       {&ReplayTotals::arrived, &ReplayTotals::finished, &ReplayTotals::within_slo,
        &ReplayTotals::prompt_tokens, &ReplayTotals::output_tokens,
        &ReplayTotals::prefix_hit_tokens, &ReplayTotals::preemptions, &ReplayTotals::events,
        &ReplayTotals::iterations, &ReplayTotals::decode_steps, &ReplayTotals::slot_steps})
    to.*sum += of.*sum;
  for (Seconds ReplayTotals::*sum :
       {&ReplayTotals::busy, &ReplayTotals::decode_time, &ReplayTotals::present,
        &ReplayTotals::stayed, &ReplayTotals::kv_used})
    to.*sum += of.*sum;
  for (std::size_t tier = 0; tier < most_tiers; ++tier) {
    to.tiers[tier].hit_tokens += of.tiers[tier].hit_tokens;
    to.tiers[tier].loaded_tokens += of.tiers[tier].loaded_tokens;
    to.tiers[tier].stored_tokens += of.tiers[tier].stored_tokens;
  }
  to.first_arrival = std::min(to.first_arrival, of.first_arrival);
  to.last_arrival = std::max(to.last_arrival, of.last_arrival);
  to.end = std::max(to.end, of.end);
  to.kv_peak = std::max(to.kv_peak, of.kv_peak);
  for (std::size_t quarter = 0; quarter < to.waiting_seen.size(); ++quarter) {
    to.waiting_seen[quarter] += of.waiting_seen[quarter];
    to.arrived_of[quarter] += of.arrived_of[quarter];
  }
}

bool ReplayCounts::saturated() const {
  const auto seen = [&](std::size_t quarter) {
    const auto arrived = static_cast<double>(totals.arrived_of[quarter]);
    return arrived > 0.0 ? static_cast<double>(totals.waiting_seen[quarter]) / arrived : 0.0;
  };
  // Arrivals of a quarter that came by chance beyond those expected.
  const double chance = 3.0 * std::sqrt(static_cast<double>(totals.arrived_of[3]));
  return seen(3) > 1.5 * seen(1) &&
         seen(3) > std::max(0.01 * static_cast<double>(totals.arrived), chance);
}

std::string ReplayCounts::bytes() const {
  std::string bytes(sizeof totals, '\0');
  std::memcpy(bytes.data(), &totals, sizeof totals);
  for (const LatencyHistogram* histogram : histograms(*this)) {
    const std::string part = histogram->bytes();
    const std::size_t size = part.size();
    bytes.append(reinterpret_cast<const char*>(&size), sizeof size);
    bytes += part;
  }
  return bytes;
}

ReplayCounts ReplayCounts::of_bytes(const std::string& bytes) {
  ReplayCounts counts;
  assert(bytes.size() >= sizeof counts.totals);
  std::memcpy(&counts.totals, bytes.data(), sizeof counts.totals);
  std::size_t at = sizeof counts.totals;
  for (LatencyHistogram* histogram : histograms(counts)) {
    std::size_t size = 0;
    assert(at + sizeof size <= bytes.size());
    std::memcpy(&size, bytes.data() + at, sizeof size);
    at += sizeof size;
    assert(at + size <= bytes.size());
    *histogram = LatencyHistogram::of_bytes(bytes.substr(at, size));
    at += size;
  }
  return counts;
}

}  // namespace orrery
