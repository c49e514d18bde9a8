#include <algorithm>
#include <cassert>

#include "sim/pipeline/schedule.hpp"

namespace orrery {
namespace {

// Each forward pass after the warm-up runs together with the backward pass that follows it if
// `paired`. The two must be of different micro-batches, so one more enters first: Megatron-LM's
// overlap of expert-parallel communication (megatron/core/pipeline_parallel/combined_1f1b.py).
std::vector<Slot> one_f_one_b_order(int stage, const Pipeline& pipeline) {
  const auto [stages, chunks, microbatches, paired] = pipeline;
  assert(0 <= stage && stage < stages);
  assert(microbatches >= 1);

  // The stages below must be fed before their first gradient can return.
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

// Warm-up, then one forward one backward, then cool-down (PipeDream-Flush; Narayanan et al.,
// arXiv 2104.04473, figure 4 top).
class OneFOneB final : public Schedule {
 public:
  OneFOneB() : Schedule{"1f1b"} {}

  Orders orders(const Pipeline& pipeline, const std::vector<PassLengths>&, Seconds) const override {
    Orders orders;
    for (int s = 0; s < pipeline.stages; ++s) orders.push_back(one_f_one_b_order(s, pipeline));
    return orders;
  }

  Held held(const Pipeline& pipeline, int stage) const override {
    return {std::min(pipeline.microbatches, pipeline.stages - stage), pipeline.paired};
  }

  // A backward pass waits for the forward pass that it would run with if there are several stages.
  Pairing pairing(int stages, int) const override {
    return stages == 1 ? Pairing::on_request : Pairing::none;
  }

  std::optional<Recurrence> recurrence(int stages, int) const override {
    return Recurrence{1, stages, stages - 1};
  }

  bool in_megatron() const override { return true; }
};

}  // namespace

const Schedule& one_f_one_b() {
  static const OneFOneB schedule;
  return schedule;
}

}  // namespace orrery
