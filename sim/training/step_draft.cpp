#include "sim/training/step_draft.hpp"

namespace orrery {

StepDraft::StepDraft(const Scenario& of, const StepCost& price, const StepTraffic& between,
                     const Cast& who, const Topology& wires)
    : scenario{of},
      plan{of.plan},
      cost{price},
      traffic{between},
      cast{who},
      placement{who.placement()},
      topology{wires},
      passes(who.roles().size()),
      ready(who.roles().size()),
      weights_of_both(who.roles().size()),
      slot_index_(
          who.roles().size(),
          std::vector<int>(static_cast<std::size_t>(3 * plan.chunks() * plan.microbatches), -1)) {}

int& StepDraft::index_of(int role_index, const Slot& slot) {
  const int index = (static_cast<int>(slot.pass) * plan.chunks() + slot.chunk) * plan.microbatches +
                    slot.microbatch;
  return slot_index_[static_cast<std::size_t>(role_index)][static_cast<std::size_t>(index)];
}

const PassTasks& StepDraft::pass_of(int role_index, const Slot& slot) {
  return passes[static_cast<std::size_t>(role_index)]
               [static_cast<std::size_t>(index_of(role_index, slot))];
}

}  // namespace orrery
