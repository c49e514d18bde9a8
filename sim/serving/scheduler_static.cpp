#include "sim/serving/schedulers.hpp"

namespace orrery {

void schedule_static(ServingBatch& batch) {
  if (batch.running() == 0)
    while (batch.anybody_waits() && batch.running() < batch.rules().most_requests) {
      const ServingBatch::Candidate next = batch.candidate();
      if (next.all_blocks > batch.kv().available()) break;
      batch.admit(next, true, Seconds{});
      batch.compute(batch.prefilling().back(), next.tokens);
    }
  if (batch.chunks().empty()) batch.run_decodes();
}

}  // namespace orrery
