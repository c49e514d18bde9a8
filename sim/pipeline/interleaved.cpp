#include <algorithm>
#include <cassert>

#include "sim/pipeline/schedule.hpp"

namespace orrery {
namespace {

// Micro-batches run in groups of p: a group passes chunk 0, then chunk 1, ..., then the next group
// follows. Backward passes visit the chunks in reverse.
Slot nth_forward(int n, int stages, int chunks) {
  const int in_group = n % (stages * chunks);
  return {Pass::forward, in_group / stages, n / (stages * chunks) * stages + in_group % stages};
}

Slot nth_backward(int n, int stages, int chunks) {
  const Slot mirrored = nth_forward(n, stages, chunks);
  return {Pass::backward, chunks - 1 - mirrored.chunk, mirrored.microbatch};
}

// The last chunk's first backward can start when (chunks - 1) p forwards have passed here and the
// p - 1 - s stages below hold one each; Megatron lets twice as many in, so that transfers in both
// directions have a slot to travel in.
int warm_up(int stage, int stages, int chunks) {
  return (stages - 1 - stage) * 2 + (chunks - 1) * stages;
}

std::vector<Slot> interleaved_order(int stage, const Pipeline& pipeline) {
  const auto [stages, chunks, microbatches, paired] = pipeline;
  assert(0 <= stage && stage < stages);
  assert(chunks >= 1 && microbatches >= 1 && microbatches % stages == 0);
  const int passes = microbatches * chunks;
  // A pair runs a forward pass with the backward pass of another micro-batch, which takes one more.
  const int warmup = std::min(passes, warm_up(stage, stages, chunks) + (paired ? 1 : 0));

  std::vector<Slot> order;
  order.reserve(2 * static_cast<std::size_t>(passes));
  for (int n = 0; n < warmup; ++n) order.push_back(nth_forward(n, stages, chunks));
  for (int n = warmup; n < passes; ++n) {
    order.push_back(nth_forward(n, stages, chunks));
    order.back().with_next = paired;
    order.push_back(nth_backward(n - warmup, stages, chunks));
  }
  for (int n = passes - warmup; n < passes; ++n) order.push_back(nth_backward(n, stages, chunks));
  return order;
}

// Each stage holds `chunks` separated pieces of the model, so that the bubble is divided by
// `chunks` (Narayanan et al., arXiv 2104.04473, figure 4 bottom).
class Interleaved final : public Schedule {
 public:
  Interleaved() : Schedule{"interleaved"} {}

  Orders orders(const Pipeline& pipeline, const std::vector<PassLengths>&, Seconds) const override {
    Orders orders;
    for (int s = 0; s < pipeline.stages; ++s) orders.push_back(interleaved_order(s, pipeline));
    return orders;
  }

  Held held(const Pipeline& pipeline, int stage) const override {
    return {std::min(pipeline.microbatches * pipeline.chunks,
                     warm_up(stage, pipeline.stages, pipeline.chunks) + 1),
            pipeline.paired};
  }

  Pairing pairing(int stages, int vpp) const override {
    return stages == 1 || vpp > 1 ? Pairing::on_request : Pairing::none;
  }

  std::optional<Recurrence> recurrence(int stages, int vpp) const override {
    const int cool_down = warm_up(0, stages, vpp);
    // One chunk gives 1F1B with a longer warm-up.
    return vpp > 1 ? Recurrence{stages, 2, cool_down} : Recurrence{1, stages, cool_down};
  }

  // Fewer than two chunks do not interleave.
  int default_vpp(int stages) const override { return stages > 1 ? 2 : 1; }

  std::optional<ScheduleRefusal> refuses(const ScheduleUse& use) const override {
    if (use.vpp > 1 && use.stages == 1)
      return ScheduleRefusal{false, "vpp",
                             "vpp=" + std::to_string(use.vpp) + " needs several stages, but pp=1",
                             "use vpp=1"};
    if (use.microbatches % use.stages != 0)
      return ScheduleRefusal{false, "gbs",
                             "the interleaved schedule needs micro-batches (" +
                                 std::to_string(use.microbatches) +
                                 ") in multiples of pp=" + std::to_string(use.stages),
                             "change gbs, mbs or dp, or use schedule=1f1b with vpp=1"};
    return std::nullopt;
  }

  bool in_megatron() const override { return true; }
};

}  // namespace

const Schedule& interleaved() {
  static const Interleaved schedule;
  return schedule;
}

}  // namespace orrery
