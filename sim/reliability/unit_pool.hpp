#pragma once

#include <functional>
#include <queue>
#include <vector>

#include "sim/reliability/failure_draws.hpp"

namespace orrery {

/// Units that are ready to take a place, and those in repair.
class UnitPool {
 public:
  explicit UnitPool(int spares) : ready_{spares} {}

  /// Calls come in the order of time.
  void lose(Micros at, Micros repair);        ///< One that had a place.
  void lose_spare(Micros at, Micros repair);  ///< One that was ready.
  void settle(Micros now);
  int ready() const { return ready_; }
  void take() { --ready_; }
  bool any_in_repair() const { return !returns_.empty(); }
  Micros next_return() const { return returns_.top(); }

  /// For how long 0, 1, ... units were in repair, until `end`, which may be before the last call.
  std::vector<Micros> with_away(Micros end) const;

 private:
  int ready_;
  std::priority_queue<Micros, std::vector<Micros>, std::greater<>> returns_;
  std::vector<Micros> lost_, back_;  // Of all units that were ever lost.
};

}  // namespace orrery
