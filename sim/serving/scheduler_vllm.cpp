#include "sim/serving/scheduler.hpp"
#include "sim/serving/serving_batch.hpp"

namespace orrery {
namespace {

// vllm/v1/core/sched/scheduler.py: decodes first, then prompts that are being computed, then those
// that wait, all in one iteration, while tokens and blocks last.
class VllmScheduler final : public Scheduler {
 public:
  void schedule(ServingBatch& batch, Seconds now) override {
    const std::int64_t before = batch.running();
    free_blocks_for_step(batch, now);
    const bool preempted = batch.running() < before;
    batch.run_decodes();
    // Blocks that the step of the decodes is about to take are not available to others.
    const std::int64_t kept = batch.growth_of_step();
    PromptTurn turn{batch, batch.rules().budget - batch.rules().step_tokens * batch.decodes(), now};
    turn.resume();
    if (preempted) return;
    while (turn.may_begin()) {
      const ServingBatch::Candidate next = batch.candidate();
      if (!turn.takes(next) || next.prompt_blocks + kept > batch.kv().available()) return;
      turn.begin(next, false);
    }
  }
};

}  // namespace

const SchedulerKind& vllm_scheduler() {
  static const SchedulerKind kind{.name = "vllm", .make = make_scheduler<VllmScheduler>};
  return kind;
}

}  // namespace orrery
