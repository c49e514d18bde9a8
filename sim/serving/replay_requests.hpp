#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "sim/serving/fleet.hpp"
#include "sim/serving/replay_counts.hpp"
#include "sim/serving/replica.hpp"
#include "sim/serving/request.hpp"
#include "sim/serving/step_times.hpp"

namespace orrery {

/// Requests that arrive at times of their own, in order.
class OwnTimes {
 public:
  /// `client`: time from sending a request to its arrival.
  OwnTimes(const RequestList& list, std::span<const std::uint32_t> requests, Seconds client)
      : list_{list}, requests_{requests}, client_{client} {}

  Seconds next() const {
    return next_ < requests_.size() ? list_.requests[requests_[next_]].arrival + client_
                                    : Replica::never;
  }
  std::uint32_t take() { return requests_[next_++]; }
  void ended(std::span<const RequestTimes>, Seconds) {}

 private:
  const RequestList& list_;
  std::span<const std::uint32_t> requests_;
  Seconds client_;
  std::size_t next_ = 0;
};

/// Clients that each send the next request, or the next ones, when the last are answered; all begin
/// at once.
class ClosedLoop {
 public:
  /// `clients`: those of `list` that send `requests`, which are all of them where clients send
  /// several together.
  ClosedLoop(const RequestList& list, std::span<const std::uint32_t> requests,
             std::uint32_t clients, Seconds client)
      : requests_{requests}, client_{client}, together_{list.together} {
    for (std::uint32_t i = 0; i < clients; ++i) send_at(client);
    if (together_ > 1) unanswered_.assign(list.requests.size() / together_ + 1, together_);
  }

  Seconds next() const {
    return next_ < requests_.size() && !times_.empty() ? times_.front() : Replica::never;
  }
  std::uint32_t take() {
    times_.pop_front();
    return requests_[next_++];
  }
  void ended(std::span<const RequestTimes> requests, Seconds now) {
    if (together_ == 1) {
      times_.insert(times_.end(), requests.size(), now + client_);
      return;
    }
    for (const RequestTimes& one : requests)
      if (--unanswered_[one.request / together_] == 0) send_at(now + client_);
  }

 private:
  void send_at(Seconds time) { times_.insert(times_.end(), together_, time); }

  std::span<const std::uint32_t> requests_;
  Seconds client_;
  std::uint32_t together_;
  std::vector<std::uint32_t> unanswered_;  // Of requests that were sent together.
  std::deque<Seconds> times_;              // Next sending times, which rise as client_ is constant.
  std::size_t next_ = 0;
};

/// Equal replicas behind a router.
struct ReplayShape {
  ReplicaShape replica;
  std::uint32_t replicas = 1;
};

struct RequestReplay {
  ReplayCounts counts;
  std::vector<RequestTimes> times;  ///< Indexed by request, if they are kept.
  /// Ordered by replica, if they are kept.
  std::vector<ReplayedIteration> iterations;
  std::uint32_t replayed = 0;  ///< Replicas that were simulated; equal ones share their counts.
};

/// Sends all requests through the replicas until the last one is answered. The result does not
/// depend on the number of workers. Requests must fit (refuse_oversized()).
RequestReplay replay_requests(const RequestList& list, const ReplayShape& shape,
                              const StepCosts& costs);
/// The same with times that other replays may have filled.
RequestReplay replay_requests(const RequestList& list, const ReplayShape& shape, StepTimes& times);

/// Refuses requests that do not fit into the empty memory of a replica: they would wait for ever.
/// `at_once`: BatchRules::at_once(). Errors (infeasible): with the number of tokens that are
/// missing.
void refuse_oversized(const RequestList& list, const KvShape& kv, std::int64_t at_once,
                      const Place& at);

}  // namespace orrery
