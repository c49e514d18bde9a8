#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <unordered_map>
#include <vector>

#include "sim/engine/link_transfers.hpp"
#include "sim/serving/fleet.hpp"
#include "sim/serving/pooled_replay.hpp"

namespace orrery {

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
      const Seconds now = std::min(next_change(), source.next());
      if (now == Replica::never) return;
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
    Seconds time;
    std::uint64_t order = 0;
    std::uint32_t request = 0;
    Then then = Then::sets_out;
    double computed = 0.0;  // Of Then::is_computed: the share of the prompt.
    bool operator>(const Later& other) const {
      return time != other.time ? time > other.time : order > other.order;
    }
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
  LinkTransfers links_;
  TransferCounts transfers_;
  std::vector<PoolTimes> times_;
  std::unordered_map<std::uint32_t, Passage> passages_;  // By request.
  std::vector<std::vector<Part>> parts_;                 // By replica of the prefill pool.
  std::vector<Part> computed_;                           // At this moment.
  std::vector<PrefilledRequest> prefilled_;              // At this moment.
  std::priority_queue<Later, std::vector<Later>, std::greater<>> later_;
  std::uint64_t laters_ = 0;
  std::vector<std::uint32_t> moving_;  // Requests by the number of their transfer.
};

}  // namespace orrery
