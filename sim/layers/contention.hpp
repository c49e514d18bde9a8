#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/layers/pass_cost.hpp"
#include "sim/layers/step_cost.hpp"

namespace orrery {

/// Time on one GPU, without what runs beside it.
struct KernelTimes {
  Seconds busy;
  Seconds streaming;  ///< Of `busy`: kernels that memory bounds.
  Seconds idle;       ///< The GPU waits for its host.
};
/// The kernels of stretches.
KernelTimes kernels_of(const std::vector<Segment>& segments);

/// What kernels of length K lose beside a collective of length E that takes the share s of the
/// multiprocessors and b of the memory's bandwidth: while it lasts those that compute bounds run at
/// 1 - s of their speed, those that memory bounds (`streaming` of K) at 1 - b, so that they end
/// after min(K / (1 - l), K + l E), l being what the mixture loses,
/// 1 / (1 - l) = (1 - streaming / K) / (1 - s) + (streaming / K) / (1 - b). Where the GPU waits for
/// its host they lose that wait first.
Seconds lost_beside(const KernelTimes& kernels, const GroupCollective& collective);
/// The same, by the prices that decide it. `prices`: of those kernels, as far as they decide how
/// long their pass takes.
TimeByPrice lost_beside(const KernelTimes& kernels, const TimeByPrice& prices,
                        const GroupCollective& collective);

/// `kernels`, and beside them a collective that slows them down.
Segment beside(const std::vector<Segment>& kernels, const GroupCollective& collective);

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
