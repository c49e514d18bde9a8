#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace orrery {

/// Pending events, the earliest first. Simultaneous events are sorted by their order, a number that
/// the caller gives: usually the order in which they became known (EventOrder).
///
/// `Time` is Ticks in simulations that compare sums of durations exactly, and Seconds in those that
/// use given times (request traces).
template <class Time, class Event>
class EventQueue {
 public:
  struct Entry {
    Time time;
    std::uint64_t order = 0;
    Event event;

    // Branches are avoided, as the result is unpredictable.
    bool operator<(const Entry& other) const {
      return (time < other.time) | ((time == other.time) & (order < other.order));
    }
  };

  bool empty() const { return entries_.empty(); }
  const Entry& next() const { return entries_.front(); }
  void clear() { entries_.clear(); }

  void push(Time time, std::uint64_t order, Event event) {
    const Entry entry{time, order, event};
    std::size_t place = entries_.size();
    entries_.push_back(entry);
    for (std::size_t parent = 0; place > 0 && entry < entries_[parent = (place - 1) / 2];
         place = parent)
      entries_[place] = entries_[parent];
    entries_[place] = entry;
  }

  Entry pop() {
    const Entry first = entries_.front();
    const Entry last = entries_.back();
    entries_.pop_back();
    const std::size_t size = entries_.size();
    std::size_t place = 0;
    for (std::size_t child = 1; child < size; child = 2 * place + 1) {
      child += static_cast<std::size_t>(child + 1 < size && entries_[child + 1] < entries_[child]);
      if (last < entries_[child]) break;
      entries_[place] = entries_[child];
      place = child;
    }
    if (size > 0) entries_[place] = last;
    return first;
  }

 private:
  std::vector<Entry> entries_;  // A binary heap: a parent has half its children's index.
};

/// Numbers events in the order in which they become known. Queues on one clock share it, so that
/// simultaneous events of different queues have that order, too.
class EventOrder {
 public:
  static constexpr std::uint64_t last = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t next() { return next_++; }

 private:
  std::uint64_t next_ = 0;
};

}  // namespace orrery
