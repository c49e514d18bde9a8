#include <algorithm>

#include "sim/work/replay/schedulers.hpp"

namespace orrery {

void make_room_for_step(ServingBatch& batch, Seconds now) {
  while (batch.growth_of_step() > batch.kv().available()) batch.preempt_youngest(now);
}

void schedule_vllm(ServingBatch& batch, Seconds now) {
  const std::int64_t before = batch.running();
  make_room_for_step(batch, now);
  const bool preempted = batch.running() < before;
  batch.run_decodes();
  // Blocks that the step of the decodes is about to take are nobody else's.
  const std::int64_t kept = batch.growth_of_step();
  std::int64_t budget = batch.rules().budget - batch.decodes();
  for (const std::uint32_t place : batch.prefilling()) {
    const Sequence& sequence = batch.sequence(place);
    const std::int64_t tokens = std::min<std::int64_t>(budget, sequence.prompt - sequence.computed);
    if (tokens <= 0) return;
    batch.compute(place, tokens);
    budget -= tokens;
  }
  if (preempted) return;
  while (batch.anybody_waits() && budget > 0 && batch.running() < batch.rules().most_requests) {
    const ServingBatch::Candidate next = batch.candidate();
    // A prompt that may not be cut and is longer than the budget has an iteration to itself.
    const bool cut = next.tokens > budget;
    if (cut && !batch.rules().chunked && !batch.chunks().empty()) return;
    if (next.prompt_blocks + kept > batch.kv().available()) return;
    batch.admit(next, false);
    const std::int64_t tokens = batch.rules().chunked ? std::min(budget, next.tokens) : next.tokens;
    batch.compute(batch.prefilling().back(), tokens);
    budget -= tokens;
  }
}

}  // namespace orrery
