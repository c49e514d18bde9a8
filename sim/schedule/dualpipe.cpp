#include <algorithm>
#include <cassert>
#include <deque>

#include "sim/schedule/schedule.hpp"

namespace orrery {
namespace {

// What a rank does is told from the nearer end of the pipeline: `near` is the direction that
// enters there, `far` the other.
class Order {
 public:
  Order(int stage, int stages, bool paired) : near_{stage < stages / 2 ? 0 : 1}, paired_{paired} {}

  void forward(bool near) { put({Pass::forward, chunk(near), next_forward_[near]++}); }
  void backward(bool near) { put({Pass::backward, chunk(near), next_backward_[near]++}); }
  void inputs(bool near) {
    backward(near);
    order.back().inputs_only = true;
    waiting_.push_back(order.back());
  }
  void weights() {
    assert(!waiting_.empty());
    put({Pass::weight_gradient, waiting_.front().chunk, waiting_.front().microbatch});
    waiting_.pop_front();
  }
  void together(bool near_forward) {
    forward(near_forward);
    order.back().with_next = paired_;
    backward(!near_forward);
  }

  std::vector<Slot> order;

 private:
  int chunk(bool near) const { return near ? near_ : 1 - near_; }
  void put(const Slot& slot) { order.push_back(slot); }

  int near_;
  bool paired_;
  int next_forward_[2] = {0, 0}, next_backward_[2] = {0, 0};
  std::deque<Slot> waiting_;  // Weight gradients, first come first.
};

}  // namespace

std::vector<Slot> dualpipe(int stage, int stages, int microbatches, bool paired) {
  assert(0 <= stage && stage < stages);
  assert(stages % 2 == 0 && microbatches % 2 == 0 && microbatches >= 2 * stages);
  const int from_end = std::min(stage, stages - 1 - stage);
  const int to_middle = stages / 2 - 1 - from_end;
  constexpr bool near = true;
  constexpr bool far = false;

  Order order{stage, stages, paired};
  for (int i = 0; i < 2 * to_middle; ++i) order.forward(near);
  for (int i = 0; i <= from_end; ++i) order.forward(near), order.forward(far);
  for (int i = 0; i < to_middle; ++i) order.inputs(far), order.weights(), order.forward(far);
  for (int i = 0; i < microbatches / 2 - stages + from_end + 1; ++i) {
    if (i == 0 && to_middle == 0)
      order.forward(near), order.backward(far);  // Its neighbour waits for the forward pass.
    else
      order.together(near);
    order.together(far);
  }
  for (int i = 0; i < to_middle; ++i) order.backward(far), order.together(far);
  // The second half of these leave their weight gradients for the time when the last inputs'
  // gradients are on their way.
  for (int i = 0; i < 2 * (from_end + 1); ++i) {
    const bool direction = i % 2 == 0 ? far : near;
    i <= from_end ? order.backward(direction) : order.inputs(direction);
  }
  for (int i = 0; i < to_middle; ++i) order.weights(), order.inputs(near);
  for (int i = 0; i <= from_end; ++i) order.weights();

  // Micro-batches of the direction that enters at the last stage come after those of the other.
  for (Slot& slot : order.order)
    if (slot.chunk == 1) slot.microbatch += microbatches / 2;
  return std::move(order.order);
}

}  // namespace orrery
