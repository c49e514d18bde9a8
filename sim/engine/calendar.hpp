#pragma once

#include <cstddef>
#include <queue>

namespace orrery {

/// What is known to happen, the earliest first; of several at one time what was known first.
class Calendar {
 public:
  enum class What {
    task_waited,    ///< Its latency or its kernels are over.
    flow_arrives,   ///< Unless its rate has changed since.
    phase_sends,    ///< A walk's phase comes to its flows.
    phase_part,     ///< A part of a walk's phase is over.
    walk_undelayed  ///< A walk is at its end, unless somebody has come into its way.
  };

  struct Event {
    double time = 0.0;
    std::size_t order = 0;
    What what = What::task_waited;
    std::size_t of = 0;  ///< A task, a flow or a walk.

    bool operator<(const Event& other) const {  // The earliest is the largest.
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  void expect(double time, What what, std::size_t of) { events_.push({time, known_++, what, of}); }
  bool empty() const { return events_.empty(); }
  double next_time() const { return events_.top().time; }
  Event take() {
    const Event event = events_.top();
    events_.pop();
    return event;
  }

 private:
  std::priority_queue<Event> events_;
  std::size_t known_ = 0;
};

}  // namespace orrery
