#include "sim/serving/prompt_turn.hpp"

#include <algorithm>

namespace orrery {

void PromptTurn::resume() {
  for (const std::uint32_t place : batch_.prefilling()) {
    const Sequence& sequence = batch_.sequence(place);
    const std::int64_t tokens =
        std::min<std::int64_t>(budget_, sequence.prompt - sequence.computed);
    if (tokens <= 0) return;
    batch_.compute(place, tokens);
    budget_ -= tokens;
  }
}

bool PromptTurn::may_begin() const {
  return !batch_.holds_prompts() && batch_.has_seen_waiting() && budget_ > 0 && batch_.has_place();
}

bool PromptTurn::takes(const ServingBatch::Candidate& next) const {
  return next.remote || next.tokens <= budget_ || batch_.rules().chunked || batch_.chunks().empty();
}

void PromptTurn::begin(const ServingBatch::Candidate& next, bool reserving) {
  if (!batch_.admit(next, reserving, now_)) return;
  const std::int64_t tokens = batch_.rules().chunked ? std::min(budget_, next.tokens) : next.tokens;
  batch_.compute(batch_.prefilling().back(), tokens);
  budget_ -= tokens;
}

void free_blocks_for_step(ServingBatch& batch, Seconds now) {
  while (batch.growth_of_step() > batch.kv().available()) batch.preempt_youngest(now);
}

}  // namespace orrery
