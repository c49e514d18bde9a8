#pragma once

#include <map>
#include <span>
#include <utility>

#include "sim/layers/step_cost.hpp"

namespace orrery {

/// What passes lose to gradients and weights of data parallelism that travel beside them
/// (lost_beside). Each collective is priced once.
class HiddenTraffic {
 public:
  /// `pricer` must outlive it.
  explicit HiddenTraffic(const Pricer& pricer) : pricer_{pricer} {}

  /// What the kernels of `pass` lose to `bytes` that a group of ranks sends; nothing to nothing.
  PassCost lost(const PassCost& pass, CollectiveKind kind, double bytes,
                GroupKind group = GroupKind::data);
  /// What they lose to the reduction of the gradients of `reduced`.
  PassCost lost_to_gradients(const Scenario& scenario, const PassCost& pass,
                             const RankParameters& reduced);

 private:
  const Pricer& pricer_;
  std::map<std::pair<std::pair<CollectiveKind, GroupKind>, double>, GroupCollective> known_;
};

/// Where a plan overlaps what travels once a step: each bucket runs forward beside the gather of
/// the one after it, and backward beside the reduction of that one, which came before. Sets
/// `lost_to_gather` and `lost_to_reduction` of all `stages` (one a virtual stage).
void lose_to_step_traffic(const Scenario& scenario, const Pricer& pricer,
                          std::span<StageCost> stages);

}  // namespace orrery
