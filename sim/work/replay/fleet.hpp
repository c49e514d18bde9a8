#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <vector>

#include "sim/work/replay/replica.hpp"
#include "sim/work/replay/request_router.hpp"

namespace orrery {

/// Replicas on one clock, for a router that looks at them when a request arrives: a heap of their
/// next changes.
class Fleet {
 public:
  /// `list`, `shape` and `times` are kept by reference. With pipelines as many replicas as they
  /// have stages take turns in each.
  Fleet(const RequestList& list, const ReplicaShape& shape, std::uint32_t replicas,
        StepTimes& times, RequestRouter router);

  /// Until all that `source` sends is answered. `ended` hears of each replica of which requests
  /// ended.
  template <class Source, class Ended>
  void run(Source& source, const Ended& ended) {
    while (true) {
      const Seconds change = next_change();
      const Seconds now = std::min(change, source.next());
      if (now == Replica::never) return;
      // All that changes at this moment, before anybody who arrives at it is sent on.
      while (next_change() == now) {
        const std::uint32_t r = changes_.top().replica;
        changes_.pop();
        replicas_[r].complete();
        source.ended(replicas_[r].ended().size(), now);
        ended(replicas_[r]);
        will_start(r);
      }
      while (source.next() <= now) deliver(source.take(), now);
      start_all();
    }
  }

  const std::deque<Replica>& replicas() const { return replicas_; }

 private:
  struct Change {
    Seconds time;
    std::uint32_t replica = 0;
    std::uint64_t version = 0;
    bool operator>(const Change& other) const {
      return time != other.time ? time > other.time : replica > other.replica;
    }
  };

  Seconds next_change();
  void expect(std::uint32_t replica);
  void will_start(std::uint32_t replica);
  void start_all();
  void deliver(std::uint32_t index, Seconds now);

  const RequestList& list_;
  RequestRouter router_;
  std::deque<Replica> replicas_;
  std::priority_queue<Change, std::vector<Change>, std::greater<>> changes_;
  std::vector<std::uint64_t> versions_;  // Of each replica's change: older ones are void.
  std::vector<std::uint32_t> to_start_;  // Those whose last iteration ended at this moment,
  std::vector<std::int64_t> busy_;       // Of each pipeline, the replicas that have work.
  std::vector<bool> starts_;             // and whether a replica is among them.
};

}  // namespace orrery
