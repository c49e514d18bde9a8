#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "sim/core/units.hpp"

namespace orrery {

class ServingBatch;

/// Decides what each iteration of one replica computes. It may keep a state of its own between
/// iterations.
class Scheduler {
 public:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  virtual ~Scheduler() = default;

  /// Chooses the parts of prompts that the next iteration computes, and whether decodes take part.
  /// It admits requests that wait and preempts those for which there are no blocks. If it chooses
  /// nothing, there is nothing to compute.
  virtual void schedule(ServingBatch& batch, Seconds now) = 0;
  /// The number of equal decode steps, at least one, after which it would admit a request although
  /// none has arrived or left meanwhile.
  virtual std::int64_t steps_until_admission(const ServingBatch&) const { return never; }
  /// So many steps of decodes without prompts are complete.
  virtual void note_decodes(std::int64_t) {}
  /// The replica has nothing left to compute.
  virtual void note_idle() {}
  /// A request has its last token. It leaves the batch, unless its slot is computed on.
  virtual void end(ServingBatch& batch, std::uint32_t place);
  /// The number of decodes that have all their tokens and are computed on.
  virtual std::int64_t padding() const { return 0; }
};

template <class Class>
std::unique_ptr<Scheduler> make_scheduler() {
  return std::make_unique<Class>();
}

/// All properties of a serving scheduler (docs/explanation/serving.md). Each has its own file, and
/// no other code asks for its name: a new one is such a value in a file, a line in schedulers(),
/// and an engine in workloads/engines that names it.
struct SchedulerKind {
  std::string name;                      ///< Its word in engine files.
  std::unique_ptr<Scheduler> (*make)();  ///< A scheduler for one replica.
  /// Prompts are computed in the same iterations as decodes, and whether users may change that.
  bool mixes = true;
  bool may_change_mixing = false;
  /// Requests enter and leave a batch between any two iterations (continuous batching: Orca, OSDI
  /// 2022). Otherwise a batch is computed to its end: nothing is planned ahead, the host's memory
  /// keeps no prefixes, and requests limit the batch, whatever tokens an iteration has.
  bool continuous = true;
  /// A request takes the blocks of its prompt and of its whole answer when it is admitted.
  bool reserves_answers = false;
  /// Copies of attention that share experts wait for each other in every iteration.
  bool copies_in_step = true;
  /// Such copies can begin prompts together (BatchRules::prefill_delay).
  bool delays_prompts = false;
  /// It need not look for new requests in every step (BatchRules::receive_interval).
  bool skips_receiving = false;
};

/// All schedulers, in the order in which messages list them.
const std::vector<const SchedulerKind*>& schedulers();
const std::vector<std::string>& scheduler_names();
/// Names of those with a property: "vllm, sglang or trtllm".
std::string schedulers_with(bool SchedulerKind::*property);

}  // namespace orrery
