#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/core/ticks.hpp"

namespace orrery {

/// What is known to happen, the earliest first; of several at one time what was known first.
class Calendar {
 public:
  enum class What : std::uint32_t {
    task_waited,    ///< Its latency or its kernels are over.
    flow_arrives,   ///< Unless its rate has changed since.
    phase_sends,    ///< A walk's phase comes to its flows.
    phase_part,     ///< A part of a walk's phase is over.
    walk_undelayed  ///< A walk is at its end, unless somebody has come into its way.
  };

  struct Event {
    Ticks time;
    std::size_t order = 0;
    What what = What::task_waited;
    std::uint32_t of = 0;  ///< A task, a flow or a walk.

    // Without branches: which of two comes first, nobody can guess.
    bool operator<(const Event& other) const {
      return (time < other.time) | ((time == other.time) & (order < other.order));
    }
  };

  void expect(Ticks time, What what, std::size_t of) {
    const Event event{time, known_++, what, static_cast<std::uint32_t>(of)};
    std::size_t place = events_.size();
    events_.push_back(event);
    for (std::size_t above = 0; place > 0 && event < events_[above = (place - 1) / 2];
         place = above)
      events_[place] = events_[above];
    events_[place] = event;
  }
  bool empty() const { return events_.empty(); }
  Ticks next_time() const { return events_.front().time; }
  Event take() {
    const Event first = events_.front();
    const Event last = events_.back();
    events_.pop_back();
    const std::size_t size = events_.size();
    std::size_t place = 0;
    for (std::size_t below = 1; below < size; below = 2 * place + 1) {
      below += static_cast<std::size_t>(below + 1 < size && events_[below + 1] < events_[below]);
      if (last < events_[below]) break;
      events_[place] = events_[below];
      place = below;
    }
    if (size > 0) events_[place] = last;
    return first;
  }

 private:
  std::vector<Event> events_;  // A heap: none comes before the one at half its place.
  std::size_t known_ = 0;
};

}  // namespace orrery
