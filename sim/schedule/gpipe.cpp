#include <cassert>

#include "sim/schedule/schedule.hpp"

namespace orrery {

std::vector<Slot> gpipe(int microbatches) {
  assert(microbatches >= 1);
  std::vector<Slot> order;
  order.reserve(2 * static_cast<std::size_t>(microbatches));
  for (int m = 0; m < microbatches; ++m) order.push_back({Pass::forward, 0, m});
  for (int m = microbatches - 1; m >= 0; --m) order.push_back({Pass::backward, 0, m});
  return order;
}

}  // namespace orrery
