#pragma once

#include <cstdint>

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

}  // namespace orrery
