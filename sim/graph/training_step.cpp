#include "sim/graph/training_step.hpp"

#include "sim/graph/step_draft.hpp"

namespace orrery {

TrainingStep build_training_step(const Scenario& scenario, std::shared_ptr<const StepCost> cost,
                                 const CollectiveTime& collectives, const GroupShapes& shapes,
                                 const Cast& cast, Topology& topology, Contraction contraction) {
  StepDraft draft{scenario, *cost, collectives, shapes, cast, topology};
  add_passes(draft, contraction);
  add_weight_prefetch(draft);
  add_transfers(draft);
  add_gradient_reduction(draft);
  add_closing(draft);
  std::vector<std::array<Way, group_kinds>> ways(cast.roles().size());
  for (GroupKind kind : all_group_kinds) {
    if (shapes[kind].per_domain < 2 || !is_inside_passes(kind)) continue;
    for (int r = 0; r < static_cast<int>(cast.roles().size()); ++r) {
      const Way* known = cast.way_of(r, traffic(kind, true));
      // What it sends, it also receives.
      ways[static_cast<std::size_t>(r)][static_cast<std::size_t>(kind)] =
          known ? *known : way(topology, cast, r, r, true);
    }
  }
  return {std::move(cost), cast, std::move(draft.graph), contraction.quiet, std::move(ways)};
}

}  // namespace orrery
