#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace orrery {

/// Who has made its last token after which decode step: a heap by the number of the step, so that
/// nothing is touched while the batch runs. Who leaves before stays in it, told by its stamp.
class FinishQueue {
 public:
  struct Entry {
    std::int64_t step = 0;
    std::uint32_t place = 0;
    std::uint32_t stamp = 0;

    // Of one step the lower place first: an order that does not depend on how the heap grew.
    bool operator>(const Entry& other) const {
      return step != other.step ? step > other.step : place > other.place;
    }
  };

  bool empty() const { return heap_.empty(); }
  const Entry& first() const { return heap_.front(); }
  void push(const Entry& entry) {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>{});
  }
  void pop() {
    std::pop_heap(heap_.begin(), heap_.end(), std::greater<>{});
    heap_.pop_back();
  }

 private:
  std::vector<Entry> heap_;
};

}  // namespace orrery
