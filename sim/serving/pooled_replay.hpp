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

/// A replay in which one pool computes prompts and another makes the answers.
struct PooledShape {
  ReplayShape prefill, decode;  ///< Both have the same settings of the replay.
  KvSending sending = KvSending::whole;
  /// Bytes of all keys and values of `tokens` tokens of a prompt.
  std::function<Bytes(std::int64_t tokens)> kv_bytes;
  Bytes states;  ///< The part of it that is states.
  int layers = 1;
  /// Delay from the end of a prompt, or from its arrival if parts are sent before, until the decode
  /// pool gets the request: messages between servers and proxies.
  Seconds handover;
};

/// Times of a request that passed both pools.
struct PoolTimes {
  Seconds prefill;   ///< Time from the first iteration of its prompt to the last.
  Seconds place;     ///< Wait until the decode pool knows of it and has a place.
  Seconds transfer;  ///< Time from the later of the two until its keys and values arrive.
};

/// Totals of all transfers. Requests for more than one token pass both pools once.
struct TransferCounts {
  LatencyHistogram prefill, place, transfer;
  std::int64_t requests = 0;
  std::int64_t prompts = 0;  ///< Tokens of prompts, and those whose keys and values were sent.
  std::int64_t tokens = 0;
  Bytes kv;        ///< Their bytes, each once.
  Bytes sent;      ///< The same with copies for ranks that hold the same.
  Seconds moving;  ///< Sum over transfers, of all their parts.
  Seconds alone;   ///< The same on idle links.
};

struct PooledReplay {
  ReplayCounts prefill, decode;  ///< Latencies are in `decode`; one-token answers' in `prefill`.
  TransferCounts transfers;
  std::vector<RequestTimes> times;  ///< Indexed by request, if they are kept.
  std::vector<PoolTimes> pool_times;
  std::vector<ReplayedIteration> prefill_iterations, decode_iterations;
};

/// Replays all requests on two pools: a request is prefilled, its keys and values move over the
/// links of `routes`, which transfers share where they meet, and it is decoded. The decode pool
/// gives it its place and blocks before anything moves; the prefill pool keeps its blocks until all
/// has arrived. `prefill`, `decode`: times of iterations in each pool. Asserts that every request
/// fits in both.
PooledReplay replay_pools(const RequestList& list, const PooledShape& shape, KvRoutes& routes,
                          StepTimes& prefill, StepTimes& decode);

/// Two fleets and the transfers between them on one clock.
///
///     client ──> prefill pool ──(keys and values)──> decode pool ──> client
///
/// A request needs a place in the decode pool before anything is sent: it asks for one when its
/// prompt is computed, or on its arrival if parts of the prompt are sent earlier.
class PooledFleet {
 public:
  /// Keeps references to all arguments.
  PooledFleet(const RequestList& list, const PooledShape& shape, KvRoutes& routes,
              StepTimes& prefill, StepTimes& decode);

  /// Runs until all requests of `source` are answered. Calls `ended` with a replica after each of
  /// its completions.
  template <class Source, class Ended>
  void run(Source& source, const Ended& ended) {
    while (true) {
      const Seconds now = links_.advance(std::min(next_change(), source.next()));
      if (now == Replica::never) return;
      arrived_.clear();
      for (const std::uint32_t transfer : links_.complete()) arrived_.push_back(moving_[transfer]);
      const auto note_ended = [&](const Replica& replica) {
        source.ended(replica.ended(), now);
        ended(replica);
      };
      prefill_.complete_all(now, [&](const Replica& replica, std::uint32_t number) {
        note_ended(replica);
        note_computed(replica, number);
      });
      decode_.complete_all(now,
                           [&](const Replica& replica, std::uint32_t) { note_ended(replica); });
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
    PlacedRequest placed;
    bool is_prefilled = false, is_placed = false, moves = false;
    Seconds sent_by_client, placed_at, part_began;
    double computed = 0.0;  // Shares of the prompt: computed,
    double sent = 0.0;      // and arrived or under way.
    double bytes = 0.0;     // Bytes to send in all.
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
    double computed = 0.0;  // The share of the prompt, if Then::is_computed.
  };

  bool places_first() const { return shape_.sending != KvSending::whole; }
  Seconds next_change();
  void take(std::uint32_t index, Seconds now);
  void note_computed(const Replica& replica, std::uint32_t number);
  void pass_on(Seconds now);
  void start_all(Seconds now);
  void note_parts(const Replica& replica, std::uint32_t number, Seconds now);
  void note_placed(std::uint32_t number, const PlacedRequest& placed, Seconds now);
  void is_computed(std::uint32_t index, double share, Seconds now);
  void send(std::uint32_t index, Seconds now);
  void set_out(std::uint32_t index, Seconds now);
  void part_arrived(std::uint32_t index, Seconds now);
  void deliver(std::uint32_t index, Seconds now);
  void later(Seconds time, std::uint32_t request, Then then, double computed = 0.0);
  void ask_for_place(std::uint32_t index, Seconds now);
  const KvRoute& route_of(const Passage& passage);

  const RequestList& list_;
  const PooledShape& shape_;
  KvRoutes& routes_;
  Fleet prefill_, decode_;
  Transfers links_;
  TransferCounts transfers_;
  std::vector<PoolTimes> times_;
  std::unordered_map<std::uint32_t, Passage> passages_;  // Keyed by request.
  std::vector<std::vector<Part>> parts_;                 // Indexed by prefill replica.
  std::vector<Part> computed_;                           // Parts that end now.
  std::vector<PrefilledRequest> prefilled_;              // Prompts that end now.
  EventQueue<Seconds, Later> later_;
  EventOrder order_;
  std::vector<std::uint32_t> moving_;   // Requests by the number of their transfer.
  std::vector<std::uint32_t> arrived_;  // Requests with a part that arrives now.
};

}  // namespace orrery
