#include "sim/reliability/unit_pool.hpp"

#include <algorithm>

namespace orrery {

void UnitPool::settle(Micros now) {
  while (!returns_.empty() && returns_.top() <= now) {
    returns_.pop();
    ++ready_;
  }
}

void UnitPool::lose(Micros at, Micros repair) {
  settle(at);
  returns_.push(at + repair);
  lost_.push_back(at);
  back_.push_back(at + repair);
}

void UnitPool::lose_spare(Micros at, Micros repair) {
  lose(at, repair);
  --ready_;
}

std::vector<Micros> UnitPool::with_away(Micros end) const {
  std::vector<Micros> back = back_;
  std::sort(back.begin(), back.end());
  std::vector<Micros> with;
  std::size_t lost = 0, returned = 0;
  for (Micros now = 0; now < end;) {
    while (lost < lost_.size() && lost_[lost] <= now) ++lost;
    while (returned < back.size() && back[returned] <= now) ++returned;
    Micros next = end;
    if (lost < lost_.size()) next = std::min(next, lost_[lost]);
    if (returned < back.size()) next = std::min(next, back[returned]);
    const std::size_t away = lost - returned;
    if (with.size() <= away) with.resize(away + 1);
    with[away] += next - now;
    now = next;
  }
  return with;
}

}  // namespace orrery
