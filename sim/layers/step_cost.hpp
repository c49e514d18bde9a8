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

/// Part of a virtual stage whose gradients are reduced, and weights gathered, together.
struct Bucket {
  PassCost forward;
  PassCost backward;
  RankParameters parameters;
  /// What ZeRO-3 gathers for the forward pass, and again for the backward pass (gathered()).
  RankParameters gathered = {}, regathered = {};
  bool gathered_ahead = true;  ///< Gathered during the previous part if the plan overlaps.
  PassCost input_gradient = {}, weight_gradient = {};  ///< See LayerPrice.
  /// Losses of its first forward pass to weights that are gathered once a step, and of the pass
  /// that completes its gradients to their reduction.
  PassCost lost_to_gather = {}, lost_to_reduction = {};
};

/// The cost of one virtual stage for a rank and micro-batch.
struct StageCost {
  PassCost forward;
  PassCost backward;            ///< Includes recomputation.
  std::vector<Bucket> buckets;  ///< Listed in forward order; their passes add up to the two above.
  RankParameters parameters;
  /// Buckets in backward order if the backward pass has other parts (cut_shard_units); then
  /// `buckets` have the forward pass alone.
  std::vector<Bucket> backward_buckets = {};
  PassCost input_gradient = {}, weight_gradient = {};  ///< See LayerPrice.

  /// The number of parts of a forward or a backward pass, and the i-th part in running order.
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

/// The cost of all layers of one shape of a model whose layers differ, for a rank and micro-batch.
struct ShapeCost {
  int layers = 0;
  Seconds forward;
  Seconds backward;  ///< Includes recomputation.
};

/// Prices of the work of the GPUs in a step. StepTraffic prices the traffic between passes.
struct StepCost {
  std::vector<StageCost> stages;  ///< One a virtual stage, with even routing.
  std::vector<ShapeCost> shapes;  ///< By LayerPattern::shapes, with even routing; or empty.
  /// Stages as routed: [(sample of the expert group x micro-batches + micro-batch) stages + virtual
  /// stage]. Empty under even routing.
  std::vector<StageCost> routed = {};
  int routed_micro_batches = 1;

  const StageCost& stage(int virtual_stage, int sample, int micro_batch) const {
    const auto v = static_cast<std::size_t>(virtual_stage);
    if (routed.empty()) return stages[v];
    const int pass = sample * routed_micro_batches + micro_batch % routed_micro_batches;
    return routed[static_cast<std::size_t>(pass) * stages.size() + v];
  }

  Bytes transfer_bytes;            ///< One rank to its peer on the next stage, each direction.
  std::vector<Seconds> optimizer;  ///< One a pipeline stage (rank).
  Tag optimizer_tag = Tag::default_value;
  Bytes tied_gradient_bytes;  ///< Embedding gradient shared by first and last stage; 0: none.
  Flop model_flop_causal;     ///< Whole step without recomputation; attention counts half.
  Flop model_flop_full;       ///< The same with the whole score matrix counted.
};

/// Pass `kernels` of the scenario's GPU and dtype. Null or even `loads` mean that tokens go to all
/// experts alike.
StepCost price_step(const Scenario& scenario, const KernelModel& kernels,
                    const CollectiveTime& collectives, const GroupShapes& shapes,
                    const RoutedLoads* loads = nullptr);
/// The same with `tables` of measurements on the GPU, or null.
StepCost price_step(const Scenario& scenario, const KernelTables* tables,
                    const CollectiveTime& collectives, const GroupShapes& shapes,
                    const RoutedLoads* loads = nullptr);

/// Multiply-adds of a training step times 2: forward, and twice that backward, or once where a
/// weight is frozen (4 flop a weight and token, as NVIDIA counts LoRA). `attended`: tokens of the
/// documents that sequences consist of (PackedLengths); 0: a sequence is one.
Flop model_flop(const Model& model, std::int64_t sequences, std::int64_t sequence, bool causal,
                bool trains_weights = true, double attended = 0.0);

}  // namespace orrery
