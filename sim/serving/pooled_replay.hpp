#pragma once

#include <cstdint>
#include <functional>
#include <unordered_map>
#include <vector>

#include "sim/engine/event_queue.hpp"
#include "sim/engine/transfers.hpp"
#include "sim/serving/fleet.hpp"
#include "sim/serving/kv_transfer.hpp"
#include "sim/serving/replay_requests.hpp"
#include "sim/serving/serving_engine.hpp"

namespace orrery {

/// How requests are replayed whose prompts one pool computes and another goes on with.
struct PooledShape {
  ReplayShape prefill, decode;  ///< Both with the same settings of the replay.
  KvSending sending = KvSending::whole;
  /// Of all keys and values of so many tokens of a prompt.
  std::function<Bytes(std::int64_t tokens)> kv_bytes;
  int layers = 1;
  /// From the end of a prompt, or from its arrival where parts are sent before, until the decode
  /// pool is asked for a place: servers and proxies that tell each other.
  Seconds handover;
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
  std::vector<RequestTimes> times;  ///< By request, where they are kept,
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

/// Two fleets and the transfers between them on one clock.
///
///     client ──> prefill pool ──(keys and values)──> decode pool ──> client
///
/// Where everything is sent when a prompt is computed, a request asks the decode pool for a place
/// then; where parts are sent before, first of all, because they need somewhere to go.
class PooledFleet {
 public:
  /// All are kept by reference.
  PooledFleet(const RequestList& list, const PooledShape& shape, KvWays& ways, StepTimes& prefill,
              StepTimes& decode);

  /// Until all that `source` sends is answered. `ended` hears of each replica of which requests
  /// ended.
  template <class Source, class Ended>
  void run(Source& source, const Ended& ended) {
    while (true) {
      const Seconds now = links_.advance(std::min(next_change(), source.next()));
      if (now == Replica::never) return;
      arrived_.clear();
      for (const std::uint32_t transfer : links_.complete()) arrived_.push_back(moving_[transfer]);
      const auto hear = [&](const Replica& replica) {
        source.ended(replica.ended().size(), now);
        ended(replica);
      };
      prefill_.complete_all(now, [&](const Replica& replica, std::uint32_t number) {
        hear(replica);
        note_computed(replica, number);
      });
      decode_.complete_all(now, [&](const Replica& replica, std::uint32_t) { hear(replica); });
      pass_on(now);
      while (source.next() <= now) take(source.take(), now);
      start_all(now);
    }
  }

  const Fleet& prefill() const { return prefill_; }
  const Fleet& decode() const { return decode_; }
  const TransferCounts& transfers() const { return transfers_; }
  const std::vector<PoolTimes>& times() const { return times_; }

 private:
  // A request on its way between the pools.
  struct Passage {
    std::uint32_t from = 0, to = 0;  // Replicas.
    PrefilledRequest prefilled;
    CalledRequest called;
    bool is_prefilled = false, is_called = false, moves = false;
    Seconds sent_by_client, called_at, part_began;
    double computed = 0.0;  // Shares of the prompt: what is computed,
    double sent = 0.0;      // and what has arrived or is on its way.
    double bytes = 0.0;     // Of all that is to be sent.
  };
  // A part of a prompt that a replica is computing.
  struct Part {
    std::uint32_t request = 0;
    double before = 0.0, after = 0.0;  // Shares of the prompt.
  };
  enum class Then { asks_for_place, is_computed, sets_out };
  struct Later {
    std::uint32_t request = 0;
    Then then = Then::sets_out;
    double computed = 0.0;  // For Then::is_computed: the share of the prompt.
  };

  bool places_first() const { return shape_.sending != KvSending::whole; }
  Seconds next_change();
  void take(std::uint32_t index, Seconds now);
  void note_computed(const Replica& replica, std::uint32_t number);
  void pass_on(Seconds now);
  void start_all(Seconds now);
  void note_parts(const Replica& replica, std::uint32_t number, Seconds now);
  void note_called(std::uint32_t number, const CalledRequest& called, Seconds now);
  void is_computed(std::uint32_t index, double share, Seconds now);
  void send(std::uint32_t index, Seconds now);
  void set_out(std::uint32_t index, Seconds now);
  void part_arrived(std::uint32_t index, Seconds now);
  void deliver(std::uint32_t index, Seconds now);
  void later(Seconds time, std::uint32_t request, Then then, double computed = 0.0);
  void ask_for_place(std::uint32_t index, Seconds now);
  const KvWay& way_of(const Passage& passage);

  const RequestList& list_;
  const PooledShape& shape_;
  KvWays& ways_;
  Fleet prefill_, decode_;
  Transfers links_;
  TransferCounts transfers_;
  std::vector<PoolTimes> times_;
  std::unordered_map<std::uint32_t, Passage> passages_;  // By request.
  std::vector<std::vector<Part>> parts_;                 // By replica of the prefill pool.
  std::vector<Part> computed_;                           // At this moment.
  std::vector<PrefilledRequest> prefilled_;              // At this moment.
  EventQueue<Seconds, Later> later_;
  EventOrder order_;
  std::vector<std::uint32_t> moving_;   // Requests by the number of their transfer.
  std::vector<std::uint32_t> arrived_;  // Requests, parts of which are complete at this moment.
};

}  // namespace orrery
