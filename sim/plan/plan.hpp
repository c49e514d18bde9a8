#pragma once

#include <string>

#include "sim/plan/plan_parts.hpp"

namespace orrery {

/// A plan in which nothing is left open: what a PlanRequest becomes once model, software and
/// cluster are known. Made by make_scenario() alone, which has checked that everything divides.
/// Below stands what follows from several of its parts.
struct Plan : Degrees,
              Batch,
              ScheduleChoice,
              Sharding,
              AttentionChoice,
              Precision,
              OptimizerState,
              RoutedExperts,
              Overlap,
              NcclChoice {
  CudaGraphs cuda_graphs = CudaGraphs::none;
  std::string software;  ///< The name of what runs it.

  bool operator==(const Plan&) const = default;
  /// Ranks that a parameter's optimizer state is spread over.
  int optimizer_shards() const { return zero >= 1 ? shard_ranks() * copies() : 1; }
  int expert_optimizer_shards() const { return zero >= 1 ? expert_shard_ranks() * copies() : 1; }
  /// Of those that hold the same weights, or the same experts, as many as ZeRO shards over.
  int shard_ranks() const { return data_ranks() / dp_replicate; }
  int expert_shard_ranks() const { return expert_data_ranks() / dp_replicate; }
  /// Of a parameter in one pipeline. With two, stage s and its mirror pp - 1 - s hold the same.
  int copies() const { return schedule->copies(); }

  /// Whether several ranks hold the same weights, or the same experts: even one replica's ranks do
  /// where experts are shared by fewer of them than other weights.
  bool has_copies() const { return data_ranks() > 1 || (experts && expert_data_ranks() > 1); }
  /// Whether gradients are reduced to their shards in every backward pass, as ZeRO-2 and 3 do. With
  /// a pipeline they are kept whole until the last micro-batch.
  bool shards_gradients() const { return zero >= 2 && pp == 1 && has_copies(); }
  /// Whether weights or gradients travel in passes of every micro-batch.
  bool shards_passes() const { return shards_weights() || shards_gradients(); }
  bool shards_weights() const { return zero == 3 && has_copies(); }
  /// What `reshard` is where nobody says it. As PyTorch's FSDP with a pipeline: to gather weights
  /// for every micro-batch would cost too much.
  bool usual_reshard() const { return pp == 1; }

  // What the schedule says, of this plan's pipeline.

  /// Whether some backward passes leave the gradients of weights to a pass of their own.
  bool splits_backward() const { return schedule->splits_backward(); }
  int chunks() const { return vpp * copies(); }  ///< That a rank holds.
  int virtual_stages() const { return pp * vpp; }
  int virtual_stage(int stage, int chunk) const {
    return schedule->virtual_stage(pp, stage, chunk);
  }
  /// The stage of ranks that holds a virtual stage, of the copy that `chunk` belongs to.
  int stage_of(int virtual_stage, int chunk) const {
    return schedule->place(pp, virtual_stage, copy_of(chunk)).stage;
  }
  /// Which of that stage's chunks it is.
  int chunk_of(int virtual_stage, int chunk) const {
    return schedule->place(pp, virtual_stage, copy_of(chunk)).chunk;
  }
  /// Of two copies of the model, the one that a chunk belongs to.
  int copy_of(int chunk) const { return chunk / vpp; }
  /// Whether one of the chunks of a stage of ranks is that virtual stage.
  bool holds(int stage, int virtual_stage) const {
    for (int copy = 0; copy < copies(); ++copy)
      if (schedule->place(pp, virtual_stage, copy).stage == stage) return true;
    return false;
  }
  /// Whether first and last virtual stage lie on one rank, which then has one tensor where the
  /// model has one in both. Of two copies of the model each has its own.
  bool joins_ends() const { return copies() == 1 && holds(0, virtual_stages() - 1); }
  /// Whether what a virtual stage puts out goes to another rank.
  bool sends_on(int virtual_stage) const {
    return virtual_stage + 1 < virtual_stages() &&
           stage_of(virtual_stage, 0) != stage_of(virtual_stage + 1, 0);
  }
  /// Whether a micro-batch goes through the chunks of that number.
  bool passes(int microbatch, int chunk) const {
    return copies() == 1 || (2 * microbatch < microbatches) == (copy_of(chunk) == 0);
  }
  int microbatches_of_chunk() const { return microbatches / copies(); }
  Pipeline pipeline() const { return {pp, chunks(), microbatches, ep_overlap}; }
};

}  // namespace orrery
