#pragma once

#include <cstdint>
#include <deque>
#include <span>

#include "sim/serving/replica.hpp"

namespace orrery {

/// Requests that arrive at times of their own, in order.
class OwnTimes {
 public:
  /// `client`: from where they are sent to where they arrive.
  OwnTimes(const RequestList& list, std::span<const std::uint32_t> requests, Seconds client)
      : list_{list}, requests_{requests}, client_{client} {}

  Seconds next() const {
    return next_ < requests_.size() ? list_.requests[requests_[next_]].arrival + client_
                                    : Replica::never;
  }
  std::uint32_t take() { return requests_[next_++]; }
  void ended(std::size_t, Seconds) {}

 private:
  const RequestList& list_;
  std::span<const std::uint32_t> requests_;
  Seconds client_;
  std::size_t next_ = 0;
};

/// Clients of which each sends its next request when its last one is answered; all begin at once.
class ClosedLoop {
 public:
  ClosedLoop(std::span<const std::uint32_t> requests, std::uint32_t clients, Seconds client)
      : requests_{requests}, client_{client}, times_(clients, client) {}

  Seconds next() const {
    return next_ < requests_.size() && !times_.empty() ? times_.front() : Replica::never;
  }
  std::uint32_t take() {
    times_.pop_front();
    return requests_[next_++];
  }
  void ended(std::size_t requests, Seconds now) {
    times_.insert(times_.end(), requests, now + client_);
  }

 private:
  std::span<const std::uint32_t> requests_;
  Seconds client_;
  std::deque<Seconds> times_;  // When clients send: they rise, as all take equally long.
  std::size_t next_ = 0;
};

}  // namespace orrery
