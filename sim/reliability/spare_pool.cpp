#include "sim/reliability/spare_pool.hpp"

#include <algorithm>

namespace orrery {
namespace {

// A unit of a rack fails (1) or returns (-1): lost islands, more or fewer.
int change(const Racks& racks, int& down, int by) {
  const int before = racks.islands_lost(down);
  return racks.islands_lost(down += by) - before;
}

}  // namespace

SparePool::SparePool(const ReplicateSetup& setup, int spares)
    : racks_{setup.racks},
      spare_islands_{setup.racks.spare_islands(spares)},
      refill_{setup.refill},
      down_(static_cast<std::size_t>(setup.racks.count)) {}

void SparePool::lose(Micros at, Micros repair, double place) {
  settle(at);
  repair = std::min(repair, refill_);
  if (repair == 0) return;
  const int rack = static_cast<int>(place * racks_.count);
  lost_ += change(racks_, down_[static_cast<std::size_t>(rack)], 1);
  returns_.emplace(at + repair, rack);
  changes_.push_back({at, rack, 1});
  changes_.push_back({at + repair, rack, -1});
}

void SparePool::settle(Micros now) {
  while (any_in_repair() && next_return() <= now) {
    lost_ += change(racks_, down_[static_cast<std::size_t>(returns_.begin()->second)], -1);
    returns_.erase(returns_.begin());
  }
}

Micros SparePool::down_to(int missing) const {
  std::vector<int> down = down_;
  int lost = lost_;
  for (const auto& [at, rack] : returns_) {
    lost += change(racks_, down[static_cast<std::size_t>(rack)], -1);
    if (missing_with(lost) <= missing) return at;
  }
  return std::numeric_limits<Micros>::max();
}

std::vector<Micros> SparePool::with_away(Micros end) const {
  std::vector<Change> changes = changes_;
  std::sort(changes.begin(), changes.end(),
            [](const Change& one, const Change& other) { return one.at < other.at; });
  std::vector<int> down(down_.size());
  std::vector<Micros> with;
  int lost = 0;
  std::size_t next = 0;
  for (Micros now = 0; now < end;) {
    for (; next < changes.size() && changes[next].at <= now; ++next)
      lost +=
          change(racks_, down[static_cast<std::size_t>(changes[next].rack)], changes[next].down);
    const Micros until = next < changes.size() ? std::min(end, changes[next].at) : end;
    const auto away = static_cast<std::size_t>(racks_.spares_for(lost));
    if (with.size() <= away) with.resize(away + 1);
    with[away] += until - now;
    now = until;
  }
  return with;
}

}  // namespace orrery
