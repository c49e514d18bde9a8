#include <algorithm>

#include "sim/work/replay/schedulers.hpp"

namespace orrery {

void schedule_trtllm(ServingBatch& batch, Seconds now) {
  if (!batch.rules().reserves_answers) return schedule_vllm(batch, now);
  batch.run_decodes();
  std::int64_t budget = batch.rules().budget - batch.decodes();
  for (const std::uint32_t place : batch.prefilling()) {
    const Sequence& sequence = batch.sequence(place);
    const std::int64_t tokens = std::min<std::int64_t>(budget, sequence.prompt - sequence.computed);
    if (tokens <= 0) return;
    batch.compute(place, tokens);
    budget -= tokens;
  }
  while (batch.anybody_waits() && budget > 0 && batch.running() < batch.rules().most_requests) {
    const ServingBatch::Candidate next = batch.candidate();
    const bool cut = next.tokens > budget;
    if (cut && !batch.rules().chunked && !batch.chunks().empty()) return;
    if (next.all_blocks > batch.kv().available()) return;
    batch.admit(next, true);
    const std::int64_t tokens = batch.rules().chunked ? std::min(budget, next.tokens) : next.tokens;
    batch.compute(batch.prefilling().back(), tokens);
    budget -= tokens;
  }
}

}  // namespace orrery
