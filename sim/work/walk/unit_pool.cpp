#include "sim/work/walk/unit_pool.hpp"

#include <algorithm>

namespace orrery {

void UnitPool::count_until(Micros now) {
  if (with_away_.size() <= returns_.size()) with_away_.resize(returns_.size() + 1);
  with_away_[returns_.size()] += now - counted_until_;
  counted_until_ = now;
}

void UnitPool::settle(Micros now) {
  while (!returns_.empty() && returns_.top() <= now) {
    count_until(returns_.top());
    returns_.pop();
    ++ready_;
  }
}

void UnitPool::lose(Micros at, Micros repair) {
  settle(at);
  count_until(at);
  returns_.push(at + repair);
}

std::vector<Micros> UnitPool::with_away(Micros end) {
  settle(end);
  count_until(end);
  return with_away_;
}

}  // namespace orrery
