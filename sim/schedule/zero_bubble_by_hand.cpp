#include <algorithm>
#include <cassert>

#include "sim/schedule/schedule.hpp"

namespace orrery {
namespace {

// As 1F1B with `warmup` forward passes first; W follows its B, but for `put_off` of them.
std::vector<Slot> with_weights_put_off(int microbatches, int warmup, int put_off) {
  std::vector<Slot> order;
  order.reserve(3 * static_cast<std::size_t>(microbatches));
  int forward = 0;
  int weights = 0;
  while (forward < std::min(warmup, microbatches)) order.push_back({Pass::forward, 0, forward++});
  for (int m = 0; m < microbatches; ++m) {
    order.push_back({Pass::backward, 0, m, false, true});
    if (m + 1 - weights > put_off) order.push_back({Pass::weight_gradient, 0, weights++});
    if (forward < microbatches) order.push_back({Pass::forward, 0, forward++});
  }
  while (weights < microbatches) order.push_back({Pass::weight_gradient, 0, weights++});
  return order;
}

}  // namespace

std::vector<Slot> zb_h1(int stage, int stages, int microbatches) {
  assert(0 <= stage && stage < stages && microbatches >= 1);
  return with_weights_put_off(microbatches, stages - stage, stage);
}

std::vector<Slot> zb_h2(int stage, int stages, int microbatches) {
  assert(0 <= stage && stage < stages && microbatches >= 1);
  return with_weights_put_off(microbatches, 2 * (stages - stage) - 1, 2 * stage);
}

}  // namespace orrery
