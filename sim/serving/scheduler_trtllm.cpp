#include "sim/serving/schedulers.hpp"

namespace orrery {

void schedule_trtllm(ServingBatch& batch, Seconds now) {
  if (!batch.rules().reserves_answers) return schedule_vllm(batch, now);
  batch.run_decodes();
  PromptTurn turn{batch, batch.rules().budget - batch.rules().step_tokens * batch.decodes(), now};
  turn.go_on();
  while (turn.goes_on()) {
    const ServingBatch::Candidate next = batch.candidate();
    if (!turn.takes(next) || next.all_blocks > batch.kv().available()) return;
    turn.begin(next, true);
  }
}

}  // namespace orrery
