#include <algorithm>
#include <cassert>
#include <utility>

#include "sim/pipeline/schedule.hpp"

namespace orrery {
namespace {

// Every backward pass in two: gradients of the inputs (the paper's B), which the stage before waits
// for, and gradients of the weights (W), which nobody waits for (Qi et al., Zero Bubble Pipeline
// Parallelism, ICLR 2024, arXiv 2401.10241, section 2). Later stages put off more of their W, so
// that all hold equally many micro-batches: with f, b and w the lengths of the three
//
//     zb-h1   min(m, p) held; idle (p - 1)(f + b - w), from the step's begin to its end
//     zb-h2   min(m, 2 p - 1) held; idle (p - 1)(f + b - 2 w), from a stage's first pass to its
//             last one, with m >= 2 p - 1 and w <= b, 2 w <= f + b
class ZeroBubbleByHand final : public Schedule {
 public:
  // `rounds`: of forward passes down the pipeline and gradients back up it that each Ws fill.
  ZeroBubbleByHand(std::string name, int rounds) : Schedule{std::move(name)}, rounds_{rounds} {}

  Orders orders(const Pipeline& pipeline, const std::vector<PassLengths>&, Seconds) const override {
    Orders orders;
    for (int s = 0; s < pipeline.stages; ++s)
      orders.push_back(
          order_of(pipeline.microbatches, rounds_ * (pipeline.stages - 1 - s) + 1, rounds_ * s));
    return orders;
  }

  Held held(const Pipeline& pipeline, int) const override {
    return {std::min(pipeline.microbatches, rounds_ * (pipeline.stages - 1) + 1)};
  }

  bool splits_backward() const override { return true; }

 private:
  // As 1F1B with `warmup` forward passes first; W follows its B, but for `put_off` of them.
  static std::vector<Slot> order_of(int microbatches, int warmup, int put_off) {
    assert(microbatches >= 1 && warmup >= 1);
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

  const int rounds_;
};

}  // namespace

const Schedule& zb_h1() {
  static const ZeroBubbleByHand schedule{"zb-h1", 1};
  return schedule;
}

const Schedule& zb_h2() {
  static const ZeroBubbleByHand schedule{"zb-h2", 2};
  return schedule;
}

}  // namespace orrery
