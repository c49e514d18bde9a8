#pragma once

#include <cstdint>

#include "sim/collectives/collective_time.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Traffic between the passes of a step, or concurrent with them, and its time on idle links:
/// transfers between stages, weights, gradients, their norm. These and StepCost are all prices of a
/// step. Traffic inside passes is part of them (PassCost).
class StepTraffic {
 public:
  /// The references must outlive it.
  StepTraffic(const Scenario& scenario, const CollectiveTime& collectives,
              const GroupShapes& shapes);

  const GroupShapes& shapes() const { return shapes_; }

  /// Activations, or their gradients, from one rank to its peer on the next virtual stage. `pair`
  /// is the shape of the two (pair_shape), `bytes` StepCost::transfer_bytes.
  CollectiveCost transfer(Bytes bytes, const GroupShape& pair) const;

  /// The gather of weights that optimizer shards have updated, by a group with the same
  /// `parameters` (GroupKind::data or expert_data).
  CollectiveCost weights(std::int64_t parameters, GroupKind group) const;
  /// The sum of gradients: each shard's to its owner with ZeRO, else all to all.
  CollectiveCost gradients(std::int64_t parameters, GroupKind group) const;
  /// The same during passes: in sequential buckets, if the software's are smaller.
  CollectiveCost bucketed_gradients(std::int64_t parameters, GroupKind group) const;
  /// The sum over its copies of a shard of the gradients of `parameters`, which `group` shares.
  CollectiveCost gradients_of_copies(std::int64_t parameters, GroupKind group) const;
  /// Host time to slice each weight of a stage into the shares of all data-parallel ranks and to
  /// copy them, if the software does so (Software::gather_calls).
  Seconds sliced_gather_host(int stage) const;

  /// Traffic of ZeRO-2 and 3 in every pass, including the host's time for the call.
  CollectiveCost shard_weights(std::int64_t parameters, GroupKind group) const;
  CollectiveCost shard_gradients(std::int64_t parameters, GroupKind group) const;

  /// Exchange between the two ranks of a pipeline that hold the same chunk, if micro-batches enter
  /// at both ends, of their weights or gradients, after their replicas'.
  CollectiveCost mirror_weights(const RankParameters& chunk, const GroupShape& pair) const;
  CollectiveCost mirror_gradients(const RankParameters& chunk, const GroupShape& pair) const;

  /// Gradients of an embedding that is copied on first and last stage. `bytes` is
  /// StepCost::tied_gradient_bytes.
  CollectiveCost tied_gradients(Bytes bytes, const GroupShape& pair) const;

  /// The sum of the squares of all gradients over all ranks that hold a part of the model.
  CollectiveCost norm() const;
  /// The same as a transfer to the next stage.
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
