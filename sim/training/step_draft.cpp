#include "sim/training/step_draft.hpp"

namespace orrery {

StepDraft::StepDraft(const Scenario& of, const StepCost& price, const StepTraffic& between,
                     const RankClasses& ranks, const Topology& wires)
    : scenario{of},
      plan{of.plan},
      cost{price},
      traffic{between},
      classes{ranks},
      placement{ranks.placement()},
      topology{wires},
      passes(ranks.reps().size()),
      ready(ranks.reps().size()),
      weights_of_both(ranks.reps().size()),
      slot_index_(
          ranks.reps().size(),
          std::vector<int>(static_cast<std::size_t>(3 * plan.chunks() * plan.microbatches), -1)) {}

int& StepDraft::index_of(int rep_index, const Slot& slot) {
  const int index = (static_cast<int>(slot.pass) * plan.chunks() + slot.chunk) * plan.microbatches +
                    slot.microbatch;
  return slot_index_[static_cast<std::size_t>(rep_index)][static_cast<std::size_t>(index)];
}

const PassTasks& StepDraft::pass_of(int rep_index, const Slot& slot) {
  return passes[static_cast<std::size_t>(rep_index)]
               [static_cast<std::size_t>(index_of(rep_index, slot))];
}

}  // namespace orrery
