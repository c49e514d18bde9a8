#include "sim/serving/scheduler.hpp"
#include "sim/serving/serving_batch.hpp"

namespace orrery {
namespace {

// TensorRT-LLM (cpp/tensorrt_llm/batch_manager/capacityScheduler.cpp): whole prompts computed with
// the decodes; GUARANTEED_NO_EVICT admits a request if its longest answer fits.
class TrtllmScheduler final : public Scheduler {
 public:
  void schedule(ServingBatch& batch, Seconds now) override {
    batch.run_decodes();
    PromptTurn turn{batch, batch.rules().budget - batch.rules().step_tokens * batch.decodes(), now};
    turn.resume();
    while (turn.may_begin()) {
      const ServingBatch::Candidate next = batch.candidate();
      if (!turn.takes(next) || next.all_blocks > batch.kv().available()) return;
      turn.begin(next, true);
    }
  }
};

}  // namespace

// All copies of attention are assumed to get prompts in the same iterations, so that none waits for
// another: AttentionDpConfig.enable_balance (tensorrt_llm/llmapi/llm_args.py), which is off unless
// set, as it is in all of InferenceX's scripts (benchmarks/single_node/fixed_seq_len/*_trt.sh).
const SchedulerKind& trtllm_scheduler() {
  static const SchedulerKind kind{.name = "trtllm",
                                  .make = make_scheduler<TrtllmScheduler>,
                                  .reserves_answers = true,
                                  .copies_in_step = false};
  return kind;
}

}  // namespace orrery
