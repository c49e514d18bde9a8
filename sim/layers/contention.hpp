#pragma once

#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sim/layers/pass_cost.hpp"
#include "sim/layers/step_cost.hpp"

namespace orrery {

/// Time on one GPU without concurrent collectives.
struct KernelTimes {
  Seconds busy;
  Seconds streaming;  ///< Part of `busy` in memory-bound kernels.
  Seconds idle;       ///< The GPU waits for its host.
};
/// Sums up the kernels of all segments.
KernelTimes kernels_of(const std::vector<Segment>& segments);

/// Time that kernels of length K lose to a concurrent collective of length E that takes the share s
/// of the multiprocessors and b of the memory's bandwidth. Until it ends, compute-bound kernels run
/// at 1 - s of their speed and memory-bound ones (`streaming` of K) at 1 - b, so that all end after
/// min(K / (1 - l), K + l E), l being the loss of the mixture, 1 / (1 - l) = (1 - streaming / K) /
/// (1 - s) + (streaming / K) / (1 - b). Waits of the GPU for its host absorb losses first.
Seconds overlap_loss(const KernelTimes& kernels, const GroupCollective& collective);
/// The same by the prices that determine it, the kernels' `prices` as far as they take time.
TimeByPrice overlap_loss(const KernelTimes& kernels, const TimeByPrice& prices,
                         const GroupCollective& collective);

/// Runs a collective concurrently with `kernels`, which it slows down.
Segment concurrent(const std::vector<Segment>& kernels, const GroupCollective& collective);

/// Losses of passes to the gradients and weights that data parallelism sends concurrently. Each
/// collective is priced once.
class HiddenTraffic {
 public:
  /// The reference `pricer` must outlive it.
  explicit HiddenTraffic(const Pricer& pricer) : pricer_{pricer} {}

  /// The loss of the kernels of `pass` to `bytes` that a group of ranks sends; empty if none.
  PassCost lost(const PassCost& pass, CollectiveKind kind, double bytes,
                GroupKind group = GroupKind::data);
  /// The loss to the reduction of the gradients of `reduced`.
  PassCost lost_to_gradients(const Scenario& scenario, const PassCost& pass,
                             const RankParameters& reduced);

 private:
  const Pricer& pricer_;
  std::map<std::pair<std::pair<CollectiveKind, GroupKind>, double>, GroupCollective> known_;
};

/// Losses to the traffic that a plan overlaps once a step: each bucket's forward pass runs
/// concurrently with the gather of the next bucket, and its backward pass with that one's
/// reduction. Sets `lost_to_gather` and `lost_to_reduction` of all `stages` (one a virtual stage).
void add_step_traffic_losses(const Scenario& scenario, const Pricer& pricer,
                             std::span<StageCost> stages);

}  // namespace orrery
