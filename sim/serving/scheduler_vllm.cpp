#include "sim/serving/schedulers.hpp"

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
  PromptTurn turn{batch, batch.rules().budget - batch.rules().step_tokens * batch.decodes(), now};
  turn.go_on();
  if (preempted) return;
  while (turn.goes_on()) {
    const ServingBatch::Candidate next = batch.candidate();
    if (!turn.takes(next) || next.prompt_blocks + kept > batch.kv().available()) return;
    turn.begin(next, false);
  }
}

}  // namespace orrery
