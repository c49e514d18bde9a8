#pragma once

#include <map>
#include <vector>

#include "sim/reliability/replicate_setup.hpp"

namespace orrery {

/// Units in repair, and what they leave to the job. The pool is refilled: where a repair takes
/// longer than ReplicateSetup::refill, a fresh unit takes the place of the failed one by then.
class SparePool {
 public:
  SparePool(const ReplicateSetup& setup, int spares);

  /// Calls must be in the order of time. `place` in [0, 1): where in the job's racks the unit is.
  void lose(Micros at, Micros repair, double place);
  void settle(Micros now);
  /// Units of the job for which neither a spare nor room in a rack is left.
  int missing() const { return missing_with(lost_); }
  int ready() const { return std::max(0, spare_islands_ - lost_) * racks_.island; }
  bool any_in_repair() const { return !returns_.empty(); }
  Micros next_return() const { return returns_.begin()->first; }
  /// When no more than `missing` units are missing, as far as is known. Some are now.
  Micros down_to(int missing) const;

  /// RunTotals::with_away until `end`, which may precede the last call.
  std::vector<Micros> with_away(Micros end) const;

 private:
  struct Change {
    Micros at = 0;
    int rack = 0;
    int down = 0;  ///< 1: a unit fails, -1: it returns.
  };
  int missing_with(int lost) const { return std::max(0, lost - spare_islands_) * racks_.island; }

  const Racks& racks_;
  int spare_islands_;
  Micros refill_;
  int lost_ = 0;                        ///< Islands.
  std::vector<int> down_;               ///< By rack.
  std::multimap<Micros, int> returns_;  ///< Racks of units in repair, by the end of it.
  std::vector<Change> changes_;         ///< All, in any order.
};

}  // namespace orrery
