#pragma once

#include <cstdint>

#include "sim/collectives/collective_time.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// What travels between the passes of a step, or beside them, and how long it takes on idle links:
/// transfers between stages, weights, gradients, their norm. With StepCost these are all the prices
/// of a step. What travels inside passes is part of them (PassCost).
class StepTraffic {
 public:
  /// All three must outlive it.
  StepTraffic(const Scenario& scenario, const CollectiveTime& collectives,
              const GroupShapes& shapes);

  const GroupShapes& shapes() const { return shapes_; }

  /// Activations, or their gradients, from one rank to its peer on the next virtual stage. `pair`:
  /// the two (pair_shape); `bytes`: StepCost::transfer_bytes.
  CollectiveCost transfer(Bytes bytes, const GroupShape& pair) const;

  /// A group that holds the same `parameters` (GroupKind::data or expert_data) gathers the weights
  /// that its optimizer shards have updated ...
  CollectiveCost weights(std::int64_t parameters, GroupKind group) const;
  /// ... and sums up gradients: each shard's to its owner with ZeRO, else all to all.
  CollectiveCost gradients(std::int64_t parameters, GroupKind group) const;
  /// The same beside passes: one bucket after another, where the software's are smaller.
  CollectiveCost bucketed_gradients(std::int64_t parameters, GroupKind group) const;
  /// A shard of the gradients of `parameters`, which `group` shares, summed over its copies.
  CollectiveCost gradients_of_copies(std::int64_t parameters, GroupKind group) const;
  /// The host's time to cut each weight of a stage into the shares of all data-parallel ranks and
  /// to copy them, where the software does so (Software::gather_calls).
  Seconds sliced_gather_host(int stage) const;

  /// ZeRO-2 and 3, in every pass: with the host's time for the call.
  CollectiveCost shard_weights(std::int64_t parameters, GroupKind group) const;
  CollectiveCost shard_gradients(std::int64_t parameters, GroupKind group) const;

  /// Where micro-batches enter at both ends: the two ranks of a pipeline that hold the same chunk
  /// exchange what each of them has of its weights, or gradients, after their replicas have.
  CollectiveCost mirror_weights(const RankParameters& chunk, const GroupShape& pair) const;
  CollectiveCost mirror_gradients(const RankParameters& chunk, const GroupShape& pair) const;

  /// Gradients of an embedding that first and last stage hold a copy of. `bytes`:
  /// StepCost::tied_gradient_bytes.
  CollectiveCost tied_gradients(Bytes bytes, const GroupShape& pair) const;

  /// The squares of all gradients, summed up over all that hold a part of the model ...
  CollectiveCost norm() const;
  /// ... or sent on to the next stage.
  CollectiveCost norm_to_next_stage() const;

 private:
  CollectiveKind reduction() const;
  Bytes mirror_bytes(const RankParameters& chunk, double bytes_each) const;
  CollectiveCost called_by_host(CollectiveCost cost) const;

  const Scenario& scenario_;
  const CollectiveTime& collectives_;
  const GroupShapes& shapes_;
};

}  // namespace orrery
