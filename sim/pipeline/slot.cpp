#include "sim/pipeline/slot.hpp"

#include <algorithm>

namespace orrery {

int peak_in_flight(const std::vector<Slot>& order) {
  int held = 0;
  int peak = 0;
  for (const Slot& slot : order) {
    if (slot.pass == Pass::forward) ++held;
    if (completes_gradients(slot)) --held;
    peak = std::max(peak, held);
  }
  return peak;
}

}  // namespace orrery
