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
  std::vector<std::array<CollectiveWays, group_kinds>> ways(cast.roles().size());
  for (GroupKind kind : all_group_kinds) {
    if (!is_inside_passes(kind)) continue;
    for (int r = 0; r < draft.role_count(); ++r) {
      // What it sends, it also receives.
      const auto way_of = [&](bool inside) {
        const Way* known = cast.way_of(r, traffic(kind, inside));
        return known ? *known : way(topology, cast, r, r, inside);
      };
      CollectiveWays& own = ways[at(r)][static_cast<std::size_t>(kind)];
      if (shapes[kind].per_domain > 1) own.scale_up = way_of(true);
      if (shapes[kind].domains > 1) own.network = way_of(false);
    }
  }
  return {std::move(cost), cast, std::move(draft.graph), contraction.quiet, std::move(ways)};
}

}  // namespace orrery
