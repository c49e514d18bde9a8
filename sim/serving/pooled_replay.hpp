#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/serving/kv_sending.hpp"
#include "sim/serving/kv_ways.hpp"
#include "sim/serving/replay_requests.hpp"

namespace orrery {

/// One of two pools: replicas as ReplayShape counts them, and those that are one copy of attention
/// (the batches that take turns in its pipeline).
struct PoolShape {
  ReplicaShape replica;
  std::uint32_t replicas = 1;
};

/// How requests are replayed whose prompts one pool computes and another goes on with.
struct PooledShape {
  PoolShape prefill, decode;
  KvSending sending = KvSending::whole;
  /// Of all keys and values of so many tokens of a prompt.
  std::function<Bytes(std::int64_t tokens)> kv_bytes;
  int layers = 1;
  /// From the end of a prompt, or from its arrival where parts are sent before, until the decode
  /// pool is asked for a place: servers and proxies that tell each other.
  Seconds handover;
  Routing routing = Routing::round_robin;  ///< In each pool.
  std::uint32_t clients = 0;               ///< Of a closed loop; 0: requests have their own times.
  std::uint64_t seed = 1;
  bool keeps_times = false;
};

/// What a request that passed both pools took there.
struct PoolTimes {
  Seconds prefill;   ///< From the first iteration with a part of its prompt to the last.
  Seconds place;     ///< From there until the decode pool has heard of it and has a place.
  Seconds transfer;  ///< From the later of the two until its keys and values are there.
};

/// What all of them took. Each but answers of one token passes both pools once.
struct TransferCounts {
  LatencyHistogram prefill, place, transfer;
  std::int64_t requests = 0;
  std::int64_t prompts = 0;  ///< Their tokens, and those whose keys and values were sent.
  std::int64_t tokens = 0;
  Bytes kv;        ///< Of them, each once.
  Bytes sent;      ///< The same with copies for ranks that hold the same.
  Seconds moving;  ///< Sum over transfers, of all their parts.
  Seconds alone;   ///< The same if nobody else had been on their links.
};

struct PooledReplay {
  ReplayCounts prefill, decode;  ///< What clients see is in `decode`, of one token in `prefill`.
  TransferCounts transfers;
  std::vector<RequestTimes> times;  ///< By request, where the shape keeps them,
  std::vector<PoolTimes> pool_times;
  std::vector<ReplayedIteration> prefill_iterations, decode_iterations;
};

/// Replays all requests on two pools: a request is prefilled, its keys and values move over the
/// links of `ways`, which transfers share where they meet, and it is decoded. The decode pool gives
/// it its place and blocks before anything moves; the prefill pool keeps its blocks until all has
/// arrived. `prefill`, `decode`: how long iterations take in each pool. Asserts that every request
/// fits in both.
PooledReplay replay_pools(const RequestList& list, const PooledShape& shape, KvWays& ways,
                          StepTimes& prefill, StepTimes& decode);

}  // namespace orrery
