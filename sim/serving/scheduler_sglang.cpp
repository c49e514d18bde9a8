#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/serving/schedulers.hpp"

namespace orrery {

void schedule_sglang(ServingBatch& batch, double share, Seconds now) {
  const bool mixed = batch.rules().mixed;
  std::int64_t budget = batch.rules().budget;
  if (mixed) {
    const std::int64_t before = batch.running();
    make_room_for_step(batch, now);
    batch.run_decodes();
    budget -= batch.rules().step_tokens * batch.decodes();
    if (batch.running() < before) {  // Who was sent back stays out for this iteration.
      PromptTurn{batch, budget, now}.go_on();
      return;
    }
  }
  // Blocks that the step of the decodes is about to take are nobody else's.
  const std::int64_t kept = mixed ? batch.growth_of_step() : 0;
  PromptTurn turn{batch, budget, now};
  turn.go_on();  // At most one prompt was cut.
  const std::int64_t block = batch.kv().block_tokens();
  double counted_on = -1.0;  // Blocks; below 0: not added up yet.
  while (turn.goes_on()) {
    const ServingBatch::Candidate next = batch.candidate();
    if (!turn.takes(next)) break;
    if (counted_on < 0.0) counted_on = share * batch.answers_left() / static_cast<double>(block);
    const std::int64_t answer = std::min(next.outputs_left, batch.rules().most_answer);
    const double blocks = static_cast<double>(next.prompt_blocks) +
                          static_cast<double>(answer) / static_cast<double>(block);
    // Alone it fits, whatever is counted on: whoever does not was refused before. Those that have
    // left for another pool may still keep their blocks.
    const bool alone = batch.running() == 0;
    if (next.prompt_blocks + kept > batch.kv().available()) break;
    if (!alone && blocks + counted_on > static_cast<double>(batch.kv().available())) break;
    turn.begin(next, false);
    counted_on += static_cast<double>(answer) / static_cast<double>(block);
  }
  if (mixed || !batch.chunks().empty()) return;
  make_room_for_step(batch, now);
  batch.run_decodes();
}

double answer_share_after(const BatchRules& rules, double share, std::int64_t steps) {
  const double decay = (rules.answer_share - rules.least_answer_share) /
                       static_cast<double>(rules.answer_share_steps);
  return std::max(rules.least_answer_share, share - decay * static_cast<double>(steps));
}

// In k steps decodes that make n tokens a step take n k of what is available, A, and of the R that
// are to come n k fewer are left, of which a share is counted on that falls by d a step. The first
// of those that wait needs N:  N + (share - d k) (R - n k) <= A - n k,  a quadratic whose smaller
// root it is.
std::int64_t steps_until_admission(ServingBatch& batch, double share) {
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  const BatchRules& rules = batch.rules();
  if (!batch.anybody_waits() || batch.running() >= rules.most_requests) return never;
  const auto block = static_cast<double>(batch.kv().block_tokens());
  const ServingBatch::Candidate next = batch.candidate();
  const double need = static_cast<double>(next.prompt_blocks) * block +
                      static_cast<double>(std::min(next.outputs_left, rules.most_answer));
  const double left = batch.answers_left();
  const double n = rules.progress * static_cast<double>(batch.decodes());  // Tokens of a step.
  const double decay = (rules.answer_share - rules.least_answer_share) /
                       static_cast<double>(rules.answer_share_steps);
  const double constant = static_cast<double>(batch.kv().available()) * block - need - share * left;
  const double linear = decay * left - n * (1.0 - share);
  const double square = decay * n;
  const double discriminant = linear * linear + 4.0 * square * constant;
  if (linear <= 0.0 || discriminant < 0.0) return never;
  // In the form that does not cancel; the constant is negative, as it is not admitted now.
  const double root = -2.0 * constant / (linear + std::sqrt(discriminant));
  const double falls_for = (share - rules.least_answer_share) / decay;
  if (!(root <= falls_for)) return never;
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(root)));
}

}  // namespace orrery
