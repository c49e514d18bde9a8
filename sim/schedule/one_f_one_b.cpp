#include <algorithm>
#include <cassert>

#include "sim/schedule/schedule.hpp"

namespace orrery {

std::vector<Slot> one_f_one_b(int stage, int stages, int microbatches, bool paired) {
  assert(0 <= stage && stage < stages);
  assert(microbatches >= 1);

  // The stages below must be fed before their first gradient can come back: that is the warm-up.
  const int warmup = std::min(stages - 1 - stage + (paired ? 1 : 0), microbatches);

  std::vector<Slot> order;
  order.reserve(2 * static_cast<std::size_t>(microbatches));
  for (int m = 0; m < warmup; ++m) order.push_back({Pass::forward, 0, m});
  for (int m = warmup; m < microbatches; ++m) {  // Steady state: one forward, one backward.
    order.push_back({Pass::forward, 0, m, paired});
    order.push_back({Pass::backward, 0, m - warmup});
  }
  for (int m = microbatches - warmup; m < microbatches; ++m)
    order.push_back({Pass::backward, 0, m});
  return order;
}

}  // namespace orrery
