#pragma once

#include <cstdint>
#include <vector>

#include "sim/core/units.hpp"
#include "sim/layers/pass_cost.hpp"
#include "sim/layers/rank_parameters.hpp"
#include "sim/model/model.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

class RoutedLoads;

/// One part of a virtual stage whose gradients travel, and whose weights are gathered, together.
struct Bucket {
  PassCost forward;
  PassCost backward;
  RankParameters parameters;
  RankParameters regathered = {};  ///< ZeRO-3: gathered once more for the backward pass.
  bool gathered_ahead = true;      ///< Beside the part before it, where the plan overlaps.
  PassCost input_gradient = {}, weight_gradient = {};  ///< As in LayerPrice.
  /// What its first forward pass loses beside weights that are gathered once a step, and the pass
  /// that completes its gradients beside those that are reduced.
  PassCost lost_to_gather = {}, lost_to_reduction = {};
};

/// What one virtual stage costs a rank for one micro-batch.
struct StageCost {
  PassCost forward;
  PassCost backward;            ///< With what the plan recomputes.
  std::vector<Bucket> buckets;  ///< In forward order; their passes add up to the two above.
  RankParameters parameters;
  /// In the order of the backward pass, where it falls into other parts (cut_shard_units): then
  /// `buckets` have the forward pass alone.
  std::vector<Bucket> backward_buckets = {};
  PassCost input_gradient = {}, weight_gradient = {};  ///< As in LayerPrice.

  /// Parts of a forward or a backward pass, and the i-th of them as it runs.
  std::size_t count(bool is_forward) const {
    return is_forward || backward_buckets.empty() ? buckets.size() : backward_buckets.size();
  }
  const Bucket& bucket(bool is_forward, std::size_t i) const {
    if (!is_forward && !backward_buckets.empty()) return backward_buckets[i];
    return buckets[is_forward ? i : buckets.size() - 1 - i];
  }
  Bucket& bucket(bool is_forward, std::size_t i) {
    if (!is_forward && !backward_buckets.empty()) return backward_buckets[i];
    return buckets[is_forward ? i : buckets.size() - 1 - i];
  }
};

/// Prices of what the GPUs of a step do. StepTraffic has the prices of what travels between passes.
struct StepCost {
  std::vector<StageCost> stages;  ///< One a virtual stage; routing being even.
  /// As routed: [(draw of the expert group x micro-batches + micro-batch) stages + virtual stage].
  /// Empty where routing is even.
  std::vector<StageCost> routed = {};
  int routed_micro_batches = 1;

  const StageCost& stage(int virtual_stage, int draw, int micro_batch) const {
    const auto v = static_cast<std::size_t>(virtual_stage);
    if (routed.empty()) return stages[v];
    const int pass = draw * routed_micro_batches + micro_batch % routed_micro_batches;
    return routed[static_cast<std::size_t>(pass) * stages.size() + v];
  }

  Bytes transfer_bytes;            ///< From one rank to its peer on the next stage, each direction.
  std::vector<Seconds> optimizer;  ///< One a pipeline stage (rank).
  Tag optimizer_tag = Tag::default_value;
  Bytes tied_gradient_bytes;  ///< Embedding gradient shared by first and last stage; 0: none.
  Flop model_flop_causal;  ///< Of the whole step, without recomputation, attention counted as half.
  Flop model_flop_full;    ///< The same with the whole score matrix counted.
};

/// `kernels`: of the scenario's GPU and dtype. `loads`: where tokens went; null or even: to all
/// experts alike.
StepCost price_step(const Scenario& scenario, const KernelModel& kernels,
                    const CollectiveTime& collectives, const GroupShapes& shapes,
                    const RoutedLoads* loads = nullptr);
/// The same from `tables`, what was measured on the GPU, or null.
StepCost price_step(const Scenario& scenario, const KernelTables* tables,
                    const CollectiveTime& collectives, const GroupShapes& shapes,
                    const RoutedLoads* loads = nullptr);

/// Multiply-adds of a training step times 2: forward, and twice that backward.
Flop model_flop(const Model& model, std::int64_t sequences, std::int64_t sequence, bool causal);

}  // namespace orrery
