#pragma once

#include <cstdint>

#include "sim/core/units.hpp"
#include "sim/serving/serving_batch.hpp"

namespace orrery {

/// The prompts of one iteration, while its budget of tokens lasts: what schedulers have in common.
class PromptTurn {
 public:
  PromptTurn(ServingBatch& batch, std::int64_t budget, Seconds now)
      : batch_{batch}, budget_{budget}, now_{now} {}

  /// Prompts that were cut go on, first come first served.
  void go_on();
  /// Whether another may begin: somebody waits, and the budget and the places of the batch last.
  bool goes_on() const;
  /// A prompt that may not be cut and is longer than the budget has an iteration to itself.
  bool takes(const ServingBatch::Candidate& next) const;
  /// The first of those that wait gets its blocks and as many tokens as the budget allows; whose
  /// prompt another pool computes, or waits for what the host holds of it, gets blocks alone.
  void begin(const ServingBatch::Candidate& next, bool reserving);

 private:
  ServingBatch& batch_;
  std::int64_t budget_;
  Seconds now_;
};

/// Decide what the next iteration computes: chunks of prompts, and whether the decodes take part.
/// They admit those that wait and send back those for whom there are no blocks. Nothing chosen
/// means that nothing is there to compute.

/// vLLM (vllm/v1/core/sched/scheduler.py): decodes first, then prompts that are being computed,
/// then those that wait, all in one iteration, while tokens and blocks last.
void schedule_vllm(ServingBatch& batch, Seconds now);

/// SGLang (python/sglang/srt/managers/schedule_policy.py, PrefillAdder): prompts go first, in
/// iterations of their own, in which no request decodes. `share`: of the tokens that are still to
/// come, what admission counts on.
void schedule_sglang(ServingBatch& batch, double share, Seconds now);
/// The share after so many decode steps.
double answer_share_after(const BatchRules& rules, double share, std::int64_t steps);
/// Decode steps after which the first of those that wait would be admitted, as the share falls.
std::int64_t steps_until_admission(ServingBatch& batch, double share);

/// TensorRT-LLM (capacityScheduler.cpp): whole prompts beside the decodes; GUARANTEED_NO_EVICT
/// admits who fits with the longest answer.
void schedule_trtllm(ServingBatch& batch, Seconds now);

/// One batch to its end, then the next: no request enters between, and each slot is computed on
/// until the longest answer is complete.
void schedule_static(ServingBatch& batch);

/// Sends back the youngest until the next step of the decodes has its blocks.
void make_room_for_step(ServingBatch& batch, Seconds now);

}  // namespace orrery
