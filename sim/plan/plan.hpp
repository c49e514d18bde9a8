#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/pipeline/schedule.hpp"
#include "sim/plan/plan_values.hpp"
#include "sim/plan/stage_layers.hpp"

namespace orrery {

/// How ranks that share a sequence meet each other's keys and values, by Megatron's names
/// (--cp-comm-type): around a ring beside the attention of what has come; gathered before it; or
/// heads swapped for tokens (Ulysses, arXiv 2309.14509).
enum class ContextExchange { p2p, all_gather, a2a };

const std::vector<std::string>& context_exchange_names();  ///< "p2p", "all_gather", "a2a"
const std::string& name(ContextExchange exchange);

/// How tokens reach their experts: as the user says it and as a plan has it.
struct ExpertChoice {
  std::string routing = "uniform";  ///< A name in workloads/routing, a file or a shape.
  ExpertDispatcher moe_dispatcher = ExpertDispatcher::all_to_all;
  bool shared_expert_overlap = false;  ///< Shared experts run beside dispatch and combine.
  /// A forward and a backward pass of two micro-batches run together, and the dispatch and combine
  /// of each beside the kernels of the other (layers/overlapped_passes.hpp).
  bool ep_overlap = false;
  bool delay_wgrad = false;  ///< Weight gradients fill what that leaves idle.

  bool operator==(const ExpertChoice&) const = default;
};

/// What NCCL may choose, as NCCL_ALGO and NCCL_PROTO say it, with '+' for their commas
/// (nccl_selection.hpp).
struct NcclChoice {
  std::string nccl_algo = "any";
  std::string nccl_proto = "any";

  bool operator==(const NcclChoice&) const = default;
};

/// How a model is spread over GPUs, in Megatron's short words. What the user left out is empty here
/// and filled in by make_scenario(), which knows the model and the cluster. plan_keys.hpp says how
/// each is written.
struct PlanRequest : ExpertChoice, OptimizerState, NcclChoice {
  int tp = 1, pp = 1, cp = 1, ep = 1, etp = 1;
  std::optional<int> vpp;
  std::optional<int> dp;  ///< Given: must agree with gpus / (tp pp cp).
  std::optional<std::int64_t> mbs;
  std::optional<std::int64_t> gbs;
  std::optional<std::int64_t> seq;
  std::optional<const Schedule*> schedule;
  StageLayers layers;
  RecomputeChoice recompute;
  int offload_layers = 0;
  std::optional<int> zero;
  int dp_replicate = 1;
  std::optional<bool> reshard;
  std::optional<bool> sp;
  std::optional<Dtype> dtype;
  std::optional<bool> fused_attention;
  bool fp8_attention = false;
  ContextExchange cp_comm = ContextExchange::p2p;
  std::optional<bool> tp_overlap;
  std::optional<bool> dp_overlap;
  std::optional<CudaGraphs> cuda_graphs;
  std::string software;  ///< Name in workloads/software; empty: chosen by default_software().

  bool operator==(const PlanRequest&) const = default;
};

// The parts that a Plan is made of, for what needs one of them and not the rest.

/// How many ranks share what: the factors of the number of GPUs, and how a pipeline stage's ranks
/// are counted again for its experts.
struct Degrees {
  int tp = 1, pp = 1;
  int vpp = 1;  ///< Chunks of the model that a rank holds.
  int dp = 1, cp = 1;
  int ep = 1, etp = 1;

  bool operator==(const Degrees&) const = default;
  int gpus() const { return tp * pp * dp * cp; }
  /// Ranks that hold the same weights: their gradients are summed.
  int data_ranks() const { return dp * cp; }
  /// Ranks that hold the same experts.
  int expert_data_ranks() const { return tp * cp * dp / (ep * etp); }
};

/// What a step trains on.
struct Batch {
  std::int64_t mbs = 1;
  std::int64_t gbs = 1;
  std::int64_t seq = 0;
  int microbatches = 1;  ///< Per pipeline: gbs / (mbs dp).

  bool operator==(const Batch&) const = default;
};

/// In which order passes run, and what they compute twice or keep on the host.
struct ScheduleChoice {
  const Schedule* schedule = &usual_schedule(1);  ///< Never null; equal where it is the same.
  StageLayers layers;                             ///< As the user chose them, or not.
  RecomputeChoice recompute;
  /// The model's first layers, whose activations are copied to the host beside the forward pass,
  /// and back beside the backward pass.
  int offload_layers = 0;

  bool operator==(const ScheduleChoice&) const = default;
};

/// What ranks that could hold the same hold a share of.
struct Sharding {
  int zero = 0;
  /// Copies of all shards, each over as many replicas (PyTorch: HSDP; MiCS, arXiv 2205.00119).
  int dp_replicate = 1;
  bool reshard = false;  ///< ZeRO-3: weights are whole only while a pass needs them.
  bool sp = false;

  bool operator==(const Sharding&) const = default;
};

/// How the attention of a sequence is computed, and by ranks that share the sequence.
struct AttentionChoice {
  bool fused_attention = true;
  bool fp8_attention = false;  ///< Its products in 8 bits, as those of the plan's format.
  ContextExchange cp_comm = ContextExchange::p2p;

  bool operator==(const AttentionChoice&) const = default;
};

struct Precision {
  Dtype dtype = Dtype::bf16;

  bool operator==(const Precision&) const = default;
};

/// What is known of the experts beyond the user's choice.
struct RoutedExperts : ExpertChoice {
  bool experts = false;   ///< The model has routed experts; each EP x ETP ranks hold all of them.
  int routing_draws = 1;  ///< Expert groups that are drawn, and stand for all others in turn.

  bool operator==(const RoutedExperts&) const = default;
};

/// Traffic that runs beside compute.
struct Overlap {
  bool overlap_tp_gradients = false;
  double tp_hidden = 0.0;
  bool dp_overlap = false;

  bool operator==(const Overlap&) const = default;
  bool tp_overlap() const { return overlap_tp_gradients || tp_hidden > 0.0; }
};

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
