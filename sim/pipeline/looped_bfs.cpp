#include "sim/pipeline/schedule.hpp"

namespace orrery {
namespace {

// Breadth first: all micro-batches pass a chunk before the next one, and return in reverse order.
// The bubble is that of interleaved 1F1B, and the gradients of a chunk are complete long before the
// step ends; the price is that all activations are held (Lamy-Poirier, arXiv 2211.05953, section
// 4.2; torch.distributed.pipelining calls it ScheduleLoopedBFS).
class LoopedBfs final : public Schedule {
 public:
  LoopedBfs() : Schedule{"looped-bfs"} {}

  Orders orders(const Pipeline& pipeline, const std::vector<PassLengths>&, Seconds) const override {
    const auto [stages, chunks, microbatches, paired] = pipeline;
    std::vector<Slot> order;
    order.reserve(2 * static_cast<std::size_t>(chunks * microbatches));
    for (int c = 0; c < chunks; ++c)
      for (int m = 0; m < microbatches; ++m) order.push_back({Pass::forward, c, m});
    for (int c = chunks - 1; c >= 0; --c)
      for (int m = microbatches - 1; m >= 0; --m) order.push_back({Pass::backward, c, m});
    return Orders(static_cast<std::size_t>(stages), order);
  }

  Held held(const Pipeline& pipeline, int) const override {
    return {pipeline.chunks * pipeline.microbatches};
  }

  // It has no recurrence(): the order as a whole depends on the number of micro-batches.

  // One chunk gives GPipe.
  int default_vpp(int stages) const override { return stages > 1 ? 2 : 1; }

  std::optional<ScheduleRefusal> refuses(const ScheduleUse& use) const override {
    if (use.vpp == 1 || use.stages > 1) return std::nullopt;
    return ScheduleRefusal{false, "vpp",
                           "vpp=" + std::to_string(use.vpp) + " needs several stages, but pp=1",
                           "use vpp=1"};
  }
};

}  // namespace

const Schedule& looped_bfs() {
  static const LoopedBfs schedule;
  return schedule;
}

}  // namespace orrery
