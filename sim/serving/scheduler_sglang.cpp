#include <algorithm>
#include <cmath>

#include "sim/serving/scheduler.hpp"
#include "sim/serving/serving_batch.hpp"

namespace orrery {
namespace {

// Admission counts on a share of the tokens that are still to come, first this one, and less with
// every decode step (python/sglang/srt/environ.py: SGLANG_INIT_NEW_TOKEN_RATIO 0.7,
// SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR 0.14, SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS 600).
constexpr double first_share = 0.7;
constexpr double least_share = 0.098;
constexpr double decay = (first_share - least_share) / 600.0;  // Decrease of the share per step.
// It never counts on more of one request (schedule_policy.py: CLIP_MAX_NEW_TOKENS).
constexpr std::int64_t most_answer = 4096;

// SGLang (python/sglang/srt/managers/schedule_policy.py, PrefillAdder): prompts go first, in
// iterations of their own, in which no request decodes, unless --enable-mixed-chunk is set.
class SglangScheduler final : public Scheduler {
 public:
  void schedule(ServingBatch& batch, Seconds now) override {
    const bool mixed = batch.rules().mixed;
    std::int64_t budget = batch.rules().budget;
    if (mixed) {
      const std::int64_t before = batch.running();
      free_blocks_for_step(batch, now);
      batch.run_decodes();
      budget -= batch.rules().step_tokens * batch.decodes();
      if (batch.running() < before) {  // A preempted request stays out of this iteration.
        PromptTurn{batch, budget, now}.resume();
        return;
      }
    }
    // Blocks that the step of the decodes is about to take are not available to others.
    const std::int64_t kept = mixed ? batch.growth_of_step() : 0;
    PromptTurn turn{batch, budget, now};
    turn.resume();  // No more than one prompt was cut.
    const double block = batch.kv().tokens_a_block();
    double counted_on = -1.0;  // Blocks; below 0: not added up yet.
    while (turn.may_begin()) {
      const ServingBatch::Candidate next = batch.candidate();
      if (!turn.takes(next)) break;
      if (counted_on < 0.0) counted_on = share_ * batch.answers_left(most_answer) / block;
      const std::int64_t answer = std::min(next.outputs_left, most_answer);
      const double blocks =
          static_cast<double>(next.prompt_blocks) + static_cast<double>(answer) / block;
      // An isolated request fits, whatever is counted on: others were refused before. Requests that
      // have left for another pool may still keep their blocks.
      const bool alone = batch.running() == 0;
      if (next.prompt_blocks + kept > batch.kv().available()) break;
      if (!alone && blocks + counted_on > static_cast<double>(batch.kv().available())) break;
      turn.begin(next, false);
      counted_on += static_cast<double>(answer) / block;
    }
    if (mixed || !batch.chunks().empty()) return;
    free_blocks_for_step(batch, now);
    batch.run_decodes();
  }

  // Decodes that make n tokens a step take n k of the A available tokens in k steps, and leave n k
  // fewer of the R to come; the share of these that is counted on falls by d a step. The first
  // request that waits needs N:  N + (share - d k) (R - n k) <= A - n k,  a quadratic. The answer
  // is its smaller root.
  std::int64_t steps_until_admission(const ServingBatch& batch) const override {
    const BatchRules& rules = batch.rules();
    if (!batch.has_waiting() || batch.holds_prompts() || !batch.has_place()) return never;
    const double block = batch.kv().tokens_a_block();
    const ServingBatch::Candidate next = batch.candidate();
    const double need = static_cast<double>(next.prompt_blocks) * block +
                        static_cast<double>(std::min(next.outputs_left, most_answer));
    const double left = batch.answers_left(most_answer);
    const double n = rules.progress * static_cast<double>(batch.decodes());  // Tokens of a step.
    const double constant =
        static_cast<double>(batch.kv().available()) * block - need - share_ * left;
    const double linear = decay * left - n * (1.0 - share_);
    const double square = decay * n;
    const double discriminant = linear * linear + 4.0 * square * constant;
    if (linear <= 0.0 || discriminant < 0.0) return never;
    // This form does not cancel; the constant is negative, as the request is not admitted now.
    const double root = -2.0 * constant / (linear + std::sqrt(discriminant));
    const double falls_for = (share_ - least_share) / decay;
    if (!(root <= falls_for)) return never;
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(root)));
  }

  void note_decodes(std::int64_t steps) override {
    share_ = std::max(least_share, share_ - decay * static_cast<double>(steps));
  }
  void note_idle() override { share_ = first_share; }

 private:
  double share_ = first_share;
};

}  // namespace

const SchedulerKind& sglang_scheduler() {
  static const SchedulerKind kind{.name = "sglang",
                                  .make = make_scheduler<SglangScheduler>,
                                  .mixes = false,
                                  .may_change_mixing = true,
                                  .delays_prompts = true,
                                  .skips_receiving = true};
  return kind;
}

}  // namespace orrery
