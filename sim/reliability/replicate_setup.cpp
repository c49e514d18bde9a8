#include "sim/reliability/replicate_setup.hpp"

#include <algorithm>

namespace orrery {

void RunLog::add(Micros from, Micros to, RunTime as) {
  if (to <= from) return;
  if (!stretches_.empty() && stretches_.back().as == as)
    stretches_.back().to = to;
  else
    stretches_.push_back({from, to, as});
}

void RunLog::take_back(Micros steps) {
  for (std::size_t i = stretches_.size(); i-- > 0 && steps > 0;) {
    RunStretch& stretch = stretches_[i];
    if (stretch.as != RunTime::productive) continue;
    const Micros lost = std::min(steps, stretch.to - stretch.from);
    steps -= lost;
    const Micros cut = stretch.to - lost;
    const bool follows = i + 1 < stretches_.size() && stretches_[i + 1].as == RunTime::redone;
    if (follows) {
      stretches_[i + 1].from = cut;
    } else {
      const RunStretch redone{cut, stretch.to, RunTime::redone};
      stretches_.insert(stretches_.begin() + static_cast<std::ptrdiff_t>(i) + 1, redone);
    }
    stretches_[i].to = cut;
    if (stretches_[i].from == cut)
      stretches_.erase(stretches_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

int ReplicateSetup::groups_away(int missing) const {
  const std::int64_t away = (std::int64_t{missing} * groups + units - 1) / units;
  return static_cast<int>(std::min<std::int64_t>(groups, away));
}

Micros RunTotals::total() const {
  Micros sum = 0;
  for (const Micros part : of) sum += part;
  return sum;
}

int RunTotals::all_interruptions() const {
  int sum = 0;
  for (const int count : interruptions) sum += count;
  return sum;
}

double RunTotals::goodput() const {
  return static_cast<double>((*this)[RunTime::productive]) / static_cast<double>(total());
}

}  // namespace orrery
