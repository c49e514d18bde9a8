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
/// next changes. Those of a pipeline take turns in it; copies of attention go in step.
class Fleet {
 public:
  /// `list`, `shape` and `times` are kept by reference. As many replicas as a pipeline has stages,
  /// or as attention has copies, are numbered one behind the other.
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
        const std::uint32_t group = changes_.top().group;
        changes_.pop();
        for (Replica* replica : running(group)) {
          replica->complete();
          source.ended(replica->ended().size(), now);
          ended(*replica);
        }
        will_start(group);
      }
      while (source.next() <= now) deliver(source.take(), now);
      start_all(now);
    }
  }

  const std::deque<Replica>& replicas() const { return replicas_; }

 private:
  // A group is one replica, or the copies of attention that go in step.
  struct Change {
    Seconds time;
    std::uint32_t group = 0;
    std::uint64_t version = 0;
    bool operator>(const Change& other) const {
      return time != other.time ? time > other.time : group > other.group;
    }
  };

  Seconds next_change();
  const std::vector<Replica*>& running(std::uint32_t group);
  void expect(std::uint32_t group);
  void will_start(std::uint32_t group);
  void start_all(Seconds now);
  void go_in_step(std::uint32_t group);
  void deliver(std::uint32_t index, Seconds now);

  const RequestList& list_;
  StepTimes& times_;
  RequestRouter router_;
  std::uint32_t copies_;
  std::deque<Replica> replicas_;
  std::priority_queue<Change, std::vector<Change>, std::greater<>> changes_;
  std::vector<std::uint64_t> versions_;  // Of each group's change: older ones are void.
  std::vector<std::uint32_t> to_start_;  // Those whose last iteration ended at this moment,
  std::vector<std::int64_t> busy_;       // Of each pipeline, the replicas that have work.
  std::vector<bool> starts_;             // and whether a group is among them.
  std::vector<Replica*> running_;
};

}  // namespace orrery
