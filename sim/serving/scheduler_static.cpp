#include "sim/serving/scheduler.hpp"
#include "sim/serving/serving_batch.hpp"

namespace orrery {
namespace {

// Computes one batch to its end, then the next: no request enters between, and each slot is
// computed on until the longest answer is complete.
class StaticScheduler final : public Scheduler {
 public:
  void schedule(ServingBatch& batch, Seconds) override {
    if (batch.running() == 0)
      while (batch.has_waiting() && batch.running() < batch.rules().most_requests) {
        const ServingBatch::Candidate next = batch.candidate();
        if (next.all_blocks > batch.kv().available()) break;
        batch.admit(next, true, Seconds{});
        batch.compute(batch.prefilling().back(), next.tokens);
      }
    if (batch.chunks().empty()) batch.run_decodes();
  }

  void end(ServingBatch& batch, std::uint32_t place) override {
    complete_.push_back(place);
    padding_ += batch.sequence(place).decodes ? 1 : 0;
    if (static_cast<std::int64_t>(complete_.size()) < batch.running()) return;
    for (const std::uint32_t one : complete_) batch.leave(one);
    complete_.clear();
    padding_ = 0;
  }

  std::int64_t padding() const override { return padding_; }

 private:
  std::vector<std::uint32_t> complete_;  // Places of requests that have all their tokens.
  std::int64_t padding_ = 0;             // Those of them that decode.
};

}  // namespace

const SchedulerKind& static_scheduler() {
  static const SchedulerKind kind{.name = "static",
                                  .make = make_scheduler<StaticScheduler>,
                                  .mixes = false,
                                  .continuous = false,
                                  .reserves_answers = true};
  return kind;
}

}  // namespace orrery
