#pragma once

#include <cstdint>
#include <string>

#include "sim/input/plan_request.hpp"

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
  /// of each beside the kernels of the other (cost/overlapped_passes.hpp).
  bool ep_overlap = false;
  bool delay_wgrad = false;  ///< Weight gradients fill what that leaves idle.
  std::int64_t mbs = 1;
  std::int64_t gbs = 1;
  std::int64_t seq = 0;
  int microbatches = 1;  ///< Per pipeline: gbs / (mbs dp).
  ScheduleKind schedule = ScheduleKind::one_f_one_b;
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
  /// Of a parameter in one pipeline: a stage's mirror holds it as well.
  int copies() const { return bidirectional() ? 2 : 1; }

  /// Whether gradients are reduced to their shards in every backward pass, as ZeRO-2 and 3 do. With
  /// a pipeline they are kept whole until the last micro-batch.
  bool shards_gradients() const { return zero >= 2 && pp == 1 && data_ranks() > 1; }
  /// Whether weights or gradients travel in passes of every micro-batch.
  bool shards_passes() const { return shards_weights() || shards_gradients(); }
  bool shards_weights() const { return zero == 3 && data_ranks() > 1; }

  /// Micro-batches enter at both ends of the pipeline, and each rank holds two chunks: of the one
  /// direction its own stage, of the other that of its mirror.
  bool bidirectional() const { return schedule == ScheduleKind::dualpipe; }
  /// Whether some backward passes leave the gradients of weights to a pass of their own.
  bool splits_backward() const { return schedule >= ScheduleKind::zb_h1; }
  int chunks() const { return bidirectional() ? 2 : vpp; }  ///< That a rank holds.
  int virtual_stages() const { return bidirectional() ? pp : pp * vpp; }
  int virtual_stage(int stage, int chunk) const {
    return bidirectional() && chunk == 1 ? pp - 1 - stage : chunk * pp + stage;
  }
  /// The rank's stage that holds a virtual stage, of the direction of `chunk` where there are two.
  int stage_of(int virtual_stage, int chunk) const {
    return bidirectional() && chunk == 1 ? pp - 1 - virtual_stage : virtual_stage % pp;
  }
  /// Which of that stage's chunks it is.
  int chunk_of(int virtual_stage, int chunk) const {
    return bidirectional() ? chunk : virtual_stage / pp;
  }
  /// Micro-batches that zb-1p and zb-2p may hold on a stage.
  int most_held() const { return schedule == ScheduleKind::zb_2p ? 2 * pp : pp; }
  /// Whether a micro-batch goes through the chunks of that number.
  bool passes(int microbatch, int chunk) const {
    return !bidirectional() || (2 * microbatch < microbatches) == (chunk == 0);
  }
  int microbatches_of_chunk() const { return bidirectional() ? microbatches / 2 : microbatches; }
  /// The first of them.
  int first_microbatch(int chunk) const {
    return bidirectional() && chunk == 1 ? microbatches / 2 : 0;
  }
};

}  // namespace orrery
