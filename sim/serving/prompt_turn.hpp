#pragma once

#include <cstdint>

#include "sim/core/units.hpp"
#include "sim/serving/serving_batch.hpp"

namespace orrery {

/// Fills an iteration with prompts while its budget of tokens lasts, for all schedulers.
class PromptTurn {
 public:
  PromptTurn(ServingBatch& batch, std::int64_t budget, Seconds now)
      : batch_{batch}, budget_{budget}, now_{now} {}

  /// Prompts of which a part is computed continue, first come first served.
  void resume();
  /// Another may begin if a request waits, and the budget and the places of the batch last.
  bool may_begin() const;
  /// A prompt that may not be cut and is longer than the budget has an iteration to itself.
  bool takes(const ServingBatch::Candidate& next) const;
  /// The first request that waits gets its blocks and as many tokens as the budget allows. If
  /// another pool computes its prompt, or the host's memory holds a part of it, it gets blocks
  /// alone.
  void begin(const ServingBatch::Candidate& next, bool reserving);

 private:
  ServingBatch& batch_;
  std::int64_t budget_;
  Seconds now_;
};

/// Preempts the youngest requests until the next step of the decodes has its blocks.
void free_blocks_for_step(ServingBatch& batch, Seconds now);

}  // namespace orrery
