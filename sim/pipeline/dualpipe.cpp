#include <algorithm>
#include <cassert>
#include <deque>

#include "sim/pipeline/schedule.hpp"

namespace orrery {
namespace {

// Directions are seen from the nearer end of the pipeline: `near` enters there, `far` at the other.
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

std::vector<Slot> dualpipe_order(int stage, const Pipeline& pipeline) {
  const auto [stages, chunks, microbatches, paired] = pipeline;
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
      order.forward(near), order.backward(far);  // The neighbour waits for this forward pass.
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

std::string text(std::int64_t value) { return std::to_string(value); }

// Micro-batches enter at both ends (DeepSeek-V3, arXiv 2412.19437, section 3.2.1 and figure 5;
// github.com/deepseek-ai/DualPipe has the order for any number of stages). Stage s holds two
// chunks: 0 is its own stage of micro-batches 0 .. m/2 - 1, which enter at stage 0; 1 is its
// mirror's, stage p - 1 - s, of the others, which enter at stage p - 1. Midway a forward pass of
// one direction runs together with a backward pass of the other; at both ends some weight gradients
// are put off. A stage is idle for (p/2 - 1)(f&b + b - 3 w) (table 2 there), with f = w, b = 2 w
// for the whole backward pass and f + b for two passes together.
class DualPipe final : public Schedule {
 public:
  DualPipe() : Schedule{"dualpipe"} {}

  Orders orders(const Pipeline& pipeline, const std::vector<PassLengths>&, Seconds) const override {
    Orders orders;
    for (int s = 0; s < pipeline.stages; ++s) orders.push_back(dualpipe_order(s, pipeline));
    return orders;
  }

  // A stage holds at most `near` micro-batches of the direction that enters at the nearer end and
  // `far` of the other, p together. Each forward pass begins before the backward pass that frees
  // memory for it: it takes one layer more if the two run together, else a chunk. At the middle of
  // the pipeline the first of these forward passes runs by itself (step 4 of the order).
  Held held(const Pipeline& pipeline, int stage) const override {
    const int from_end = std::min(stage, pipeline.stages - 1 - stage);
    const int to_middle = pipeline.stages / 2 - 1 - from_end;
    const int near = 2 * to_middle + from_end + 1, far = from_end + 1;
    const bool together = pipeline.paired && to_middle > 0;
    Held held{near + far + (together ? 0 : 1), together};
    const bool enters_first = stage < pipeline.stages / 2;
    held.most_of_copy = {enters_first ? near + 1 : far, enters_first ? far : near + 1};
    return held;
  }
  bool splits_backward() const override { return true; }
  Pairing pairing(int, int) const override { return Pairing::by_itself; }

  int copies() const override { return 2; }
  bool wraps() const override { return false; }
  int virtual_stage(int stages, int stage, int chunk) const override {
    return chunk == 0 ? stage : stages - 1 - stage;
  }
  ChunkPlace place(int stages, int virtual_stage, int copy) const override {
    return {copy == 0 ? virtual_stage : stages - 1 - virtual_stage, copy};
  }

  std::optional<ScheduleRefusal> refuses(const ScheduleUse& use) const override {
    if (use.vpp > 1)
      return ScheduleRefusal{true, "vpp",
                             "schedule=dualpipe has one chunk a stage for each direction",
                             "leave vpp out, or use schedule=interleaved"};
    if (use.stages % 2 != 0)
      return ScheduleRefusal{false, "pp",
                             "schedule=dualpipe pairs each stage with its mirror, but pp=" +
                                 text(use.stages) + " is odd",
                             "use pp=" + text(use.stages + 1) + ", or schedule=1f1b"};
    const std::int64_t least = 2 * std::int64_t{use.stages};
    if (use.microbatches % 2 != 0 || use.microbatches < least)
      return ScheduleRefusal{
          false, "gbs",
          "schedule=dualpipe needs an even number of micro-batches and at least 2 pp=" +
              text(least) + ", but there are " + text(use.microbatches),
          "use gbs=" + text(use.sequences * std::max<std::int64_t>(least, use.microbatches + 1)) +
              ", or schedule=1f1b"};
    return std::nullopt;
  }

  bool recomputes_for_weights() const override { return true; }
};

}  // namespace

const Schedule& dualpipe() {
  static const DualPipe schedule;
  return schedule;
}

}  // namespace orrery
