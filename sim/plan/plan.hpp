#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/core/enum_words.hpp"
#include "sim/pipeline/schedule.hpp"
#include "sim/plan/documents.hpp"
#include "sim/plan/finetuning.hpp"
#include "sim/plan/plan_values.hpp"
#include "sim/plan/stage_layers.hpp"

namespace orrery {

/// Exchange of keys and values between ranks that share a sequence, by Megatron's names
/// (--cp-comm-type): around a ring, overlapped with attention; gathered before it; or heads swapped
/// for tokens (Ulysses, arXiv 2309.14509).
enum class ContextExchange { p2p, all_gather, a2a };
template <>
inline const std::vector<std::string> enum_words<ContextExchange>{"p2p", "all_gather", "a2a"};

/// Keys of a plan that a request has as the plan does. plan_keys.hpp says how each is written.
struct PlanChoices {
  int tp = 1, pp = 1, cp = 1, ep = 1, etp = 1;
  StageLayers layers;
  Documents documents;  ///< Packed into sequences.
  /// Sequences of a replica that pass the pipeline before the next ones enter; 0: all of a step.
  std::int64_t local_batch = 0;
  RecomputeChoice recompute;
  /// The model's first layers, whose activations are copied to the host overlapped with the forward
  /// pass, and back overlapped with the backward pass.
  int offload_layers = 0;
  /// Parts of all layers, of which inputs are copied so.
  OffloadModules offload_modules;
  /// The head's products and the loss run in chunks of tokens, whose logits alone are in memory.
  bool chunked_loss = false;
  /// Percent of the optimizer's state that is in the host's memory, which updates it there.
  int offload_optimizer = 0;
  /// Zero 3: the host holds shards of the weights, which come to the GPU before each gather.
  bool offload_weights = false;
  /// Copies of all shards, each over as many replicas (PyTorch: HSDP; MiCS, arXiv 2205.00119).
  int dp_replicate = 1;

  MainParams main_params = MainParams::fp32;
  Dtype exp_avg = Dtype::fp32, exp_avg_sq = Dtype::fp32;  ///< Adam's moments.
  /// In fp8 and mxfp8: linear layers' weights are kept and gathered in 8 bits, not in 16.
  bool fp8_params = false;
  /// In 8 bits and fewer: the inputs of activations are kept in 8 bits for the backward pass
  /// (Megatron Core, activation_func_fp8_input_store).
  bool fp8_activation_inputs = false;
  /// In 8 bits and fewer: the model's first and last layers, whose products stay in bf16.
  int bf16_start_layers = 0, bf16_end_layers = 0;
  bool fp8_attention = false;  ///< Attention's products in 8 bits, as those of the plan's format.

  Finetune finetune = Finetune::full;
  /// LoRA: the inner width of adapters, what has one, and whether its input is dropped out.
  int lora_rank = 16;
  LoraTargets lora_targets = {LoraTarget::qkv, LoraTarget::proj, LoraTarget::fc1, LoraTarget::fc2};
  bool lora_dropout = false;
  bool train_tables = false;  ///< LoRA: the embedding and the head are trained as well.

  std::string routing = "uniform";  ///< A name in workloads/routing, a file or a shape.
  ExpertDispatcher moe_dispatcher = ExpertDispatcher::all_to_all;
  bool shared_expert_overlap = false;  ///< Shared experts overlap dispatch and combine.
  /// A forward and a backward pass of two micro-batches run together: the dispatch and combine of
  /// each overlap the kernels of the other (layers/overlapped_passes.hpp).
  bool ep_overlap = false;
  bool delay_wgrad = false;  ///< Weight gradients fill its idle time.

  /// What NCCL may choose, as NCCL_ALGO and NCCL_PROTO say it, with '+' for their commas
  /// (nccl_selection.hpp).
  std::string nccl_algo = "any", nccl_proto = "any";
  /// Ranks of a large cluster wait for each other (waiting_for_others).
  bool wait_for_others = true;
  std::string software;  ///< Name in workloads/software. A request: empty: default_software().
  /// The software that runs has no file: `software` stands in for it.
  bool software_stands_in = false;

  bool operator==(const PlanChoices&) const = default;
  bool keeps_layers_in_bf16() const { return bf16_start_layers + bf16_end_layers > 0; }
  /// All weights are trained; else adapters alone.
  bool trains_weights() const { return finetune == Finetune::full; }
  bool trains_tables() const { return trains_weights() || train_tables; }
  bool adapts(LoraTarget target) const {
    return !trains_weights() && lora_targets.contains(target);
  }
  bool offloads(OffloadModule module) const { return offload_modules.contains(module); }
  /// Activations of whole layers or of parts of them wait in the host's memory.
  bool offloads_activations() const { return offload_layers > 0 || !offload_modules.empty(); }
  /// The optimizer keeps masters and moments in fp32.
  bool has_fp32_state() const {
    return main_params == MainParams::fp32 && exp_avg == Dtype::fp32 && exp_avg_sq == Dtype::fp32;
  }
};

/// Keys of a plan that a request may leave open: As<T> is T in a plan, std::optional<T> in a
/// request.
template <template <class> class As>
struct OpenPlanChoices {
  As<int> vpp{};  ///< Chunks of the model that a rank holds.
  As<int> dp{};   ///< Of a request: must agree with gpus / (tp pp cp).
  As<std::int64_t> mbs{}, gbs{}, seq{};
  As<const Schedule*> schedule{};  ///< Never null in a plan; equal where it is the same.
  As<int> zero{};
  As<bool> reshard{};  ///< ZeRO-3: weights are whole only while a pass needs them.
  As<bool> sp{};
  As<Dtype> dtype{};
  As<bool> fused_attention{};
  As<ContextExchange> cp_comm{};
  As<bool> dp_overlap{};
  As<CudaGraphs> cuda_graphs{};
  As<BaseFormat> base_format{};  ///< Of frozen weights.

  bool operator==(const OpenPlanChoices&) const = default;
};

/// How a model is spread over GPUs, in Megatron's short words. What the user left out is empty here
/// and filled in by make_scenario(), which knows the model and the cluster.
struct PlanRequest : OpenPlanChoices<std::optional>, PlanChoices {
  std::optional<bool> tp_overlap;

  bool operator==(const PlanRequest&) const = default;
};

/// A plan in which nothing is left open: what a PlanRequest becomes once model, software and
/// cluster are known. Made by make_scenario() alone, which has checked that everything divides.
/// Searches compare plans of one shape: what they vary is compared first.
struct Plan : OpenPlanChoices<std::type_identity_t>, PlanChoices {
  int microbatches = 1;   ///< Per pipeline: gbs / (mbs dp).
  bool experts = false;   ///< The model has routed experts; EP x ETP ranks hold all of them.
  int routing_draws = 1;  ///< Expert groups that are sampled, and stand for all others in turn.
  bool overlap_tp_gradients = false;
  double tp_hidden = 0.0;

  /// A rank that trains with one sequence a step.
  Plan() {
    vpp = dp = 1;
    mbs = gbs = 1;
    schedule = &default_schedule(1);
    dtype = Dtype::bf16;
    fused_attention = true;
  }
  bool operator==(const Plan&) const = default;

  int gpus() const { return tp * pp * dp * cp; }
  /// Ranks that hold the same weights: their gradients are summed.
  int data_ranks() const { return dp * cp; }
  /// Ranks that hold the same experts.
  int expert_data_ranks() const { return tp * cp * dp / (ep * etp); }
  bool tp_overlap() const { return overlap_tp_gradients || tp_hidden > 0.0; }
  /// Ranks that a parameter's optimizer state is spread over.
  int optimizer_shards() const { return zero >= 1 ? shard_ranks() * copies() : 1; }
  int expert_optimizer_shards() const { return zero >= 1 ? expert_shard_ranks() * copies() : 1; }
  /// Ranks, of those that hold the same weights or the same experts, that ZeRO shards over.
  int shard_ranks() const { return data_ranks() / dp_replicate; }
  int expert_shard_ranks() const { return expert_data_ranks() / dp_replicate; }
  /// Copies of a parameter in one pipeline. If 2, stage s and its mirror pp - 1 - s hold the same.
  int copies() const { return schedule->copies(); }

  /// True if several ranks hold the same weights or the same experts: even ranks of one replica
  /// do, if experts are spread over fewer of them than other weights.
  bool has_copies() const { return data_ranks() > 1 || (experts && expert_data_ranks() > 1); }
  /// True if gradients are reduced to their shards in every backward pass, as in ZeRO-2 and 3. With
  /// a pipeline they are kept whole until the last micro-batch.
  bool shards_gradients() const { return zero >= 2 && pp == 1 && has_copies(); }
  /// True if weights or gradients are sent in passes of every micro-batch.
  bool shards_passes() const { return shards_weights() || shards_gradients(); }
  bool shards_weights() const { return zero == 3 && has_copies(); }
  /// Shards of gradients go to the host as soon as they are reduced.
  bool streams_gradients() const { return offload_optimizer > 0 && shards_passes(); }
  /// Default of `reshard`, as in PyTorch's FSDP with a pipeline: gathering weights for every
  /// micro-batch would cost too much.
  bool default_reshard() const { return pp == 1; }

  // Properties of the schedule for this plan's pipeline.

  /// True if some weight gradients are computed in a pass of their own.
  bool splits_backward() const { return schedule->splits_backward(); }
  int chunks() const { return vpp * copies(); }  ///< Chunks that a rank holds.
  int virtual_stages() const { return pp * vpp; }
  int virtual_stage(int stage, int chunk) const {
    return schedule->virtual_stage(pp, stage, chunk);
  }
  /// The stage of ranks that holds a virtual stage, of the copy that `chunk` belongs to.
  int stage_of(int virtual_stage, int chunk) const {
    return schedule->place(pp, virtual_stage, copy_of(chunk)).stage;
  }
  /// Index among that stage's chunks.
  int chunk_of(int virtual_stage, int chunk) const {
    return schedule->place(pp, virtual_stage, copy_of(chunk)).chunk;
  }
  /// Copy of the model that a chunk belongs to.
  int copy_of(int chunk) const { return chunk / vpp; }
  /// True if a chunk of the stage of ranks is that virtual stage.
  bool holds(int stage, int virtual_stage) const {
    for (int copy = 0; copy < copies(); ++copy)
      if (schedule->place(pp, virtual_stage, copy).stage == stage) return true;
    return false;
  }
  /// True if first and last virtual stage are on one rank, which then has one tensor if the model
  /// shares it between both. Two copies of the model each have their own.
  bool joins_ends() const { return copies() == 1 && holds(0, virtual_stages() - 1); }
  /// True if the outputs of a virtual stage are sent to another rank.
  bool sends_on(int virtual_stage) const {
    return virtual_stage + 1 < virtual_stages() &&
           stage_of(virtual_stage, 0) != stage_of(virtual_stage + 1, 0);
  }
  /// True if a micro-batch passes the chunk of that number.
  bool passes(int microbatch, int chunk) const {
    return copies() == 1 || (2 * microbatch < microbatches) == (copy_of(chunk) == 0);
  }
  int microbatches_of_chunk() const { return microbatches / copies(); }
  /// Micro-batches that enter before the pipeline drains.
  int microbatches_of_round() const {
    return local_batch > 0 && pp > 1 ? static_cast<int>(local_batch / mbs) : microbatches;
  }
  /// The pipeline of one round.
  Pipeline pipeline() const { return {pp, chunks(), microbatches_of_round(), ep_overlap}; }
  /// The passes of every rank, of all rounds of a step; arguments as in Schedule::orders().
  Orders orders(const std::vector<PassLengths>& lengths, Seconds transfer) const {
    return repeated(schedule->orders(pipeline(), lengths, transfer), microbatches_of_round(),
                    microbatches);
  }
  /// Schedule::recurrence(), of rounds if there are several.
  std::optional<Recurrence> recurrence() const {
    const int round = microbatches_of_round();
    if (round < microbatches) return Recurrence{round, 2, round * chunks()};
    return schedule->recurrence(pp, vpp);
  }
};

}  // namespace orrery
