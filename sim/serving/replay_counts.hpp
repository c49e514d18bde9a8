#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "sim/core/units.hpp"
#include "sim/serving/latency_histogram.hpp"
#include "sim/serving/slo.hpp"

namespace orrery {

/// What one finished request saw.
struct RequestTimes {
  std::uint32_t request = 0;
  Seconds arrival;  ///< When it was sent.
  Seconds queue;    ///< From there until it was first in an iteration.
  Seconds ttft;     ///< To its first token.
  Seconds tpot;     ///< (e2e - ttft) / (output - 1); 0 of one token.
  Seconds e2e;
  std::uint32_t prefix_hits = 0;  ///< Tokens of its prompt,
  std::uint32_t host_hits = 0;    ///< and of them those that came from the host's memory.
  std::uint32_t preemptions = 0;
};

/// Sums over a replay.
struct ReplayTotals {
  std::int64_t arrived = 0, finished = 0;  ///< Requests.
  std::int64_t within_slo = 0;
  std::int64_t prompt_tokens = 0, output_tokens = 0, prefix_hit_tokens = 0;  ///< Of the finished.
  std::int64_t host_hit_tokens = 0;  ///< Of prefix_hit_tokens, those that came from the host.
  /// Of all requests, also of those that were sent back: from the host's memory and to it.
  std::int64_t host_loaded_tokens = 0, host_stored_tokens = 0;
  Seconds host_time;  ///< For which the link to the host was in use by loads.
  std::int64_t preemptions = 0;
  std::int64_t events = 0;        ///< Changes of a batch.
  std::int64_t iterations = 0;    ///< Steps that a GPU made.
  std::int64_t decode_steps = 0;  ///< Of them those in which requests decode,
  std::int64_t slot_steps = 0;    ///< and their requests, with those of which only padding is left.
  Seconds first_arrival{1e300}, last_arrival, end;
  Seconds busy;          ///< In iterations.
  Seconds decode_time;   ///< In those in which requests decode.
  Seconds present;       ///< Integral of the number of requests that are there.
  Seconds stayed;        ///< Sum of the times for which those that finished were there.
  Seconds kv_used;       ///< Integral of the share of blocks in use, over the busy time.
  double kv_peak = 0.0;  ///< Largest share of blocks in use.
  /// Requests that waited when one arrived, by the quarter of the requests that it was in.
  std::array<std::int64_t, 4> waiting_seen{}, arrived_of{};
};

/// What a replay counts, of one replica or of several added up. Sums of seconds depend on the order
/// in which they are added: it is that of the replicas, whoever replayed them.
struct ReplayCounts {
  LatencyHistogram ttft, tpot, itl, e2e, queue;
  ReplayTotals totals;

  void finish(const RequestTimes& times, std::uint32_t prompt, std::uint32_t output,
              const Slo& slo);
  void add(const ReplayCounts& other);
  /// The queue grows through the run: requests of the last quarter found half as many again waiting
  /// as those of the second, and more than a hundredth of all.
  bool saturated() const;

  std::string bytes() const;
  static ReplayCounts of_bytes(const std::string& bytes);
};

}  // namespace orrery
