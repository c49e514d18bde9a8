#include <cassert>

#include "sim/pipeline/schedule.hpp"

namespace orrery {
namespace {

// All forwards, then all backwards, last micro-batch first as its activations are the freshest
// (Huang et al., arXiv 1811.06965).
class Gpipe final : public Schedule {
 public:
  Gpipe() : Schedule{"gpipe"} {}

  Orders orders(const Pipeline& pipeline, const std::vector<PassLengths>&, Seconds) const override {
    assert(pipeline.microbatches >= 1);
    std::vector<Slot> order;
    order.reserve(2 * static_cast<std::size_t>(pipeline.microbatches));
    for (int m = 0; m < pipeline.microbatches; ++m) order.push_back({Pass::forward, 0, m});
    for (int m = pipeline.microbatches - 1; m >= 0; --m) order.push_back({Pass::backward, 0, m});
    return Orders(static_cast<std::size_t>(pipeline.stages), order);
  }

  Held held(const Pipeline& pipeline, int) const override { return {pipeline.microbatches}; }

  // It has no recurrence(): in its forward passes fast stages run further and further ahead.
};

}  // namespace

const Schedule& gpipe() {
  static const Gpipe schedule;
  return schedule;
}

}  // namespace orrery
