#include "sim/serving/replay_counts.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <type_traits>

namespace orrery {
namespace {

// The histograms in the order in which they are written.
template <class Counts>
auto histograms(Counts& counts) {
  return std::array{&counts.ttft, &counts.tpot, &counts.itl, &counts.e2e, &counts.queue};
}

static_assert(std::is_trivially_copyable_v<ReplayTotals>);

}  // namespace

void ReplayCounts::finish(const RequestTimes& times, std::uint32_t prompt, std::uint32_t output,
                          const Slo& slo) {
  ttft.add(times.ttft);
  e2e.add(times.e2e);
  queue.add(times.queue);
  if (output > 1) tpot.add(times.tpot);
  ++totals.finished;
  totals.within_slo += slo.met(times.ttft, times.tpot, times.e2e) ? 1 : 0;
  totals.prompt_tokens += prompt;
  totals.output_tokens += output;
  totals.prefix_hit_tokens += times.prefix_hits;
  totals.host_hit_tokens += times.host_hits;
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
        &ReplayTotals::prefix_hit_tokens, &ReplayTotals::host_hit_tokens,
        &ReplayTotals::host_loaded_tokens, &ReplayTotals::host_stored_tokens,
        &ReplayTotals::preemptions, &ReplayTotals::events, &ReplayTotals::iterations,
        &ReplayTotals::decode_steps, &ReplayTotals::slot_steps})
    to.*sum += of.*sum;
  for (Seconds ReplayTotals::*sum :
       {&ReplayTotals::busy, &ReplayTotals::decode_time, &ReplayTotals::present,
        &ReplayTotals::stayed, &ReplayTotals::kv_used, &ReplayTotals::host_time})
    to.*sum += of.*sum;
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
  return seen(3) > 1.5 * seen(1) && seen(3) > 0.01 * static_cast<double>(totals.arrived);
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
