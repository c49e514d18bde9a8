#pragma once

#include <cstdint>
#include <string>

#include "sim/input/scenario/plan_request.hpp"

namespace orrery {

/// A plan in which nothing is left open: what a PlanRequest becomes once model, software and
/// cluster are known. Made by make_scenario() alone, which has checked that everything divides.
struct Plan {
  int tp = 1, pp = 1, vpp = 1, dp = 1, cp = 1;
  bool experts = false;  ///< The model has routed experts; each EP x ETP ranks hold all of them.
  int ep = 1, etp = 1;
  std::string routing = "uniform";  ///< sim/routing reads it.
  int routing_draws = 1;  ///< Expert groups that are drawn, and stand for all others in turn.
  ExpertDispatcher moe_dispatcher = ExpertDispatcher::all_to_all;
  bool shared_expert_overlap = false;  ///< Shared experts run beside dispatch and combine.
  /// A forward and a backward pass of two micro-batches run together, and the dispatch and combine
  /// of each beside the kernels of the other (cost/passes/overlapped_passes.hpp).
  bool ep_overlap = false;
  bool delay_wgrad = false;  ///< Weight gradients fill what that leaves idle.
  std::int64_t mbs = 1;
  std::int64_t gbs = 1;
  std::int64_t seq = 0;
  int microbatches = 1;                           ///< Per pipeline: gbs / (mbs dp).
  const Schedule* schedule = &usual_schedule(1);  ///< Never null; equal where it is the same.
  RecomputeChoice recompute;
  int zero = 0;
  bool reshard = false;  ///< ZeRO-3: weights are whole only while a pass needs them.
  bool sp = false;
  Dtype dtype = Dtype::bf16;
  bool fused_attention = true;
  ContextExchange cp_comm = ContextExchange::p2p;
  bool overlap_tp_gradients = false;
  double tp_hidden = 0.0;
  bool dp_overlap = false;

  bool operator==(const Plan&) const = default;
  int gpus() const { return tp * pp * dp * cp; }
  /// Ranks that hold the same weights: their gradients are summed, and ZeRO shards over them.
  int data_ranks() const { return dp * cp; }
  /// Ranks that hold the same experts.
  int expert_data_ranks() const { return tp * cp * dp / (ep * etp); }
  /// Ranks that a parameter's optimizer state is spread over.
  int optimizer_shards() const { return zero >= 1 ? data_ranks() * copies() : 1; }
  int expert_optimizer_shards() const { return zero >= 1 ? expert_data_ranks() * copies() : 1; }
  /// Of a parameter in one pipeline. With two, stage s and its mirror pp - 1 - s hold the same.
  int copies() const { return schedule->copies(); }

  /// Whether gradients are reduced to their shards in every backward pass, as ZeRO-2 and 3 do. With
  /// a pipeline they are kept whole until the last micro-batch.
  bool shards_gradients() const { return zero >= 2 && pp == 1 && data_ranks() > 1; }
  /// Whether weights or gradients travel in passes of every micro-batch.
  bool shards_passes() const { return shards_weights() || shards_gradients(); }
  bool shards_weights() const { return zero == 3 && data_ranks() > 1; }

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
