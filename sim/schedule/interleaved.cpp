#include <algorithm>
#include <cassert>

#include "sim/schedule/schedule.hpp"

namespace orrery {
namespace {

// Micro-batches go in groups of p: p of them through chunk 0, the same p through chunk 1, ... then
// the next p. Backward passes visit the chunks in reverse.
Slot nth_forward(int n, int stages, int chunks) {
  const int in_group = n % (stages * chunks);
  return {Pass::forward, in_group / stages, n / (stages * chunks) * stages + in_group % stages};
}

Slot nth_backward(int n, int stages, int chunks) {
  const Slot mirrored = nth_forward(n, stages, chunks);
  return {Pass::backward, chunks - 1 - mirrored.chunk, mirrored.microbatch};
}

}  // namespace

std::vector<Slot> interleaved(int stage, int stages, int chunks, int microbatches, bool paired) {
  assert(0 <= stage && stage < stages);
  assert(chunks >= 1 && microbatches >= 1 && microbatches % stages == 0);

  // The last chunk's first backward can start when (chunks - 1) p forwards have passed here and
  // the p - 1 - s stages below hold one each; Megatron lets twice as many in, so that transfers in
  // both directions have a slot to travel in.
  const int passes = microbatches * chunks;
  const int warmup =
      std::min(passes, (stages - 1 - stage) * 2 + (chunks - 1) * stages + (paired ? 1 : 0));

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

}  // namespace orrery
