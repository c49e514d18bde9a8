#pragma once

#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/core/error.hpp"
#include "sim/core/json_value.hpp"
#include "sim/measurements/kernel_tables.hpp"
#include "sim/plan/plan.hpp"
#include "sim/plan/plan_values.hpp"

namespace orrery {

struct PlanKey;
struct Software;

/// The values of one plan key that a software supports; it supports all of a key without an entry.
struct Support {
  const PlanKey* key = nullptr;
  std::vector<std::string> words;  ///< Values in the flag's notation.
  bool of_state = false;           ///< The key is a member of OptimizerState.

  bool operator==(const Support&) const = default;
  /// True if `word`, without its refinement (":core_attn+mlp"), is one of them.
  bool has(const std::string& word) const;
};

/// Reads {"zero": {"value": [0, 1], "source": "..."}, "schedule": ...}. Errors: an unknown key, no
/// values, an illegal value.
std::vector<Support> read_support(const JsonValue& json);

/// Refuses a plan with a value that the software does not support.
MaybeRefused check_support(const Software& software, const Plan& plan);

/// True if some plan may have this value of `key`, in the flag's notation.
bool supports(const Software& software, const std::string& key, const std::string& value);

/// Kernels that `recompute=selective` computes again.
enum class SelectiveRecompute {
  core_attention,  ///< Korthikanti et al. 2022, section 5: scores, softmax and values.
  /// Everything but attention and every other product, counted from the first: of Llama's seven
  /// keys, the output projection and the MLP's second input (torchtitan, "op").
  alternate_products
};

/// Host time for the parts of an eager layer with experts in a forward pass: Python, checks,
/// allocations and launches. A backward pass takes it as long again. Zero: only launches are known,
/// or a CUDA graph makes them.
struct ExpertLayerHost {
  Seconds attention;  ///< Everything before the second norm.
  Seconds router;     ///< Scores, and the assignment of tokens to experts.
  Seconds exchange;   ///< A dispatch or a combine.
  Seconds expert;     ///< The products of one expert.
  /// Latent attention takes this time instead of `attention`: its projections, rotary positions and
  /// concatenations are separate launches.
  Seconds latent_attention{};
  Seconds shared_experts{};  ///< All of them together, in addition to the routed ones.

  bool operator==(const ExpertLayerHost&) const = default;
};

/// Costs of fp8 in addition to `quantise_bytes`.
struct Fp8Scaling {
  /// One scale for each row of an operand, along the product's summed dimension, not one for the
  /// whole. Then `quantise_bytes` make one direction, for forward products and input gradients; the
  /// other direction, for weight gradients, is made from the 16-bit tensor when they need it; and
  /// tensor-parallel gathers send 16 bits, quantised on arrival.
  bool by_rows = false;
  double columns_bytes = 0.0;    ///< Bytes per element for the other direction.
  double gemm_efficiency = 1.0;  ///< Efficiency of 8-bit products, relative to the calibrated.
  /// Bytes per weight of a layer and pass that multiplies by it: forward (and recomputation), and
  /// backward. 0: quantised once a step, which is not counted.
  double forward_weight_bytes = 0.0, backward_weight_bytes = 0.0;

  bool operator==(const Fp8Scaling&) const = default;
};

/// Operations that run as several kernels, as in eager PyTorch; else each is one kernel.
struct EagerKernels {
  bool rms_norm = false, rotary = false, gated_activation = false;
  bool scaled_rotary = false;  ///< Rotary embedding with scaling (Model::scaled_rotary).

  bool operator==(const EagerKernels&) const = default;
};

/// Figures that differ in fp32 and tf32. The rest follows (parameter_formats.hpp).
struct Fp32Training {
  bool fused_attention = false;  ///< false: a fused kernel has 16 bits only.
  double logit_forward_bytes = 0.0, logit_backward_bytes = 0.0, logit_held_bytes = 0.0;
  double unshard_bytes = 0.0, reduce_copy_bytes = 0.0;

  bool operator==(const Fp32Training&) const = default;
};

/// Implementation of training by a framework of some era: its passes over memory, its overlaps, its
/// precision of reductions. Files in workloads/software give each figure's source. Byte counts are
/// HBM traffic, reads and writes together.
struct Software {
  /// Inferred from plans that were run at several sizes, a vote a publication: 27 ms, and 11 to 34
  /// with a publication left out (docs/notes/growth.md).
  static constexpr Seconds default_wait_time{0.020};

  std::string name;
  std::string title;

  Dtype dtype = Dtype::bf16;       ///< Default of the plan.
  bool sequence_parallel = false;  ///< Default of the plan.
  int zero = 0;                    ///< Default of the plan.

  bool fused_attention = true;  ///< false: the score matrix is written to memory.
  /// Library of fused attention's kernels, if it was measured; none: that of the tables.
  std::optional<AttentionLibrary> attention_library;
  bool deterministic = false;  ///< Transformer Engine's attention is bitwise reproducible.
  bool dropout = false;        ///< Dropout on attention scores and on both residual branches.
  /// false: bias gradients and changes of the q, k, v layout are passes of their own.
  bool fused_bias_gradients = true;
  bool scatter_gather = true;         ///< Pipeline transfers carry 1/tp of the tensor a rank.
  bool early_recompute_stop = false;  ///< Recomputation ends with the last tensor that is needed.
  /// Queries, keys and values are one product, and so are both inputs of a gated MLP; else each is
  /// one of its own, and their gradients of the common input are summed.
  bool fused_projections = true;
  /// A column-parallel layer with sequence parallelism keeps a rank's share of its input and
  /// gathers it again for its weight gradient; else it keeps the gathered input.
  bool gathers_inputs_again = true;
  /// Queries are a view of a copy of all three, which lives as long as they do, while keys and
  /// values are copied once more; only where there are as many of these as queries.
  bool keeps_packed_qkv = false;
  SelectiveRecompute selective_recompute = SelectiveRecompute::core_attention;
  /// Default batch: as many micro-batches as stages, else micro-batches of one sequence.
  bool microbatches_are_stages = false;

  /// Input-gradient all-reduce overlaps the weight-gradient GEMM.
  bool overlap_tp_gradients = false;
  double tp_hidden = 0.0;   ///< Share of traffic in an NVLink domain that TP pipelines into GEMMs.
  bool tp_overlap = true;   ///< Default of the plan for both.
  bool overlap_pp = false;  ///< Stage transfers overlap compute.
  bool overlap_dp = false;  ///< Gradient reduction overlaps the last backward pass.
  /// Likewise if the optimizer's state is sharded (ZeRO-1); false: not then.
  bool overlap_dp_sharded = true;
  /// ZeRO-1 sums up all gradients on all ranks, and each rank uses its share of them; else each
  /// gets the sum of its share.
  bool reduces_to_all = false;
  /// Host calls for each weight and each rank's share of it, if ZeRO-1's weights are gathered after
  /// the update and one tensor at a time.
  double gather_calls = 0.0;
  /// Size of buckets, in bytes of 16-bit gradients, of overlapped reduction without ZeRO (0: as in
  /// Megatron-LM), and bytes per parameter of the copy of a bucket that is held.
  Bytes bucket_size;
  double bucket_copy_bytes = 0.0;
  /// Experts have an optimizer of their own, and each of the two gathers all weights if gathers are
  /// not overlapped.
  bool optimizers_gather_all = false;
  /// No stage waits for the norm of all gradients: each updates its weights with the norm of the
  /// stages before it, and a step that turns out wrong is undone (Qi et al., arXiv 2401.10241,
  /// section 4). A stage's next step follows its own last one at once.
  bool optimizer_post_validation = false;
  /// Time that ranks wait for each other's hosts in a step, for each doubling of a large cluster
  /// (waiting_for_others). None where the host launches the step as one graph.
  Seconds wait_time = default_wait_time;

  double accumulate_bytes = 8.0;       ///< Accumulation, per parameter and micro-batch.
  double logit_forward_bytes = 12.0;   ///< Cross-entropy forward, per logit.
  double logit_backward_bytes = 12.0;  ///< Cross-entropy backward, per logit.
  double logit_held_bytes = 6.0;       ///< Peak memory of cross-entropy, per logit.
  bool recomputes_logits = false;      ///< The backward pass multiplies by the head's weight again.
  double optimizer_bytes = 40.0;       ///< Update, per parameter.
  double loss_scaling_bytes = 0.0;     ///< The same, in fp16 only, if not in optimizer_bytes.
  /// Gradients set to zero, checked and scaled before reduction, per parameter held and step.
  double gradient_pass_bytes = 0.0;
  /// One kernel multiplies for all experts of a rank, and applies and quantises their activation;
  /// else each expert has its own, with others between them.
  bool fused_experts = false;
  /// One kernel multiplies for all experts of a rank, and does nothing else.
  bool grouped_experts = false;
  /// Buffers of experts have a fixed size, so that activations for the backward pass are copied out
  /// of them and back.
  bool stashes_experts = false;
  /// Rate of kernels that permute tokens to their experts, relative to plain copies.
  double permute_efficiency = 1.0;
  /// fp8: per element of an activation or gradient that is quantised, its forms for all products.
  double quantise_bytes = 4.0;
  /// fp8: a product keeps its input in 8 bits, as its weight gradient needs it; else in 16.
  bool keeps_quantised_inputs = false;
  bool keeps_quantised_activations = false;  ///< Likewise an activation's input.
  Fp8Scaling fp8_scaling;
  std::optional<Fp32Training> fp32;  ///< None: it trains in neither fp32 nor tf32.
  /// Efficiency of products in formats with scale blocks, relative to the calibrated ones; 1 where
  /// none is given.
  std::map<Dtype, double> block_gemm_efficiency;
  double weight_bytes = 2.0;  ///< Sent per parameter when weights are gathered.
  /// Copies per parameter from the buffer of gathered weights, and to that of reduced gradients.
  double unshard_bytes = 0.0;
  double reduce_copy_bytes = 0.0;
  bool shards_by_tensor = false;  ///< Weights are gathered matrix by matrix, not layer by layer.
  double shard_calls = 0.0;       ///< Host calls per rank before each such collective.
  /// Weights are gathered ahead only while fewer parameters are whole.
  double live_parameters = std::numeric_limits<double>::infinity();
  bool sums_copies_once = false;     ///< Copies of shards sum gradients after the last micro-batch.
  bool replicates_keys = false;      ///< Ulysses sends a key/value head to several of its ranks.
  double gradient_bytes = 4.0;       ///< Sent per parameter when gradients are reduced.
  double main_gradient_bytes = 4.0;  ///< Gradient buffer, per parameter held.
  /// Share of the bandwidth of the host's memory that Adam reaches there. Here PyTorch's: 8 billion
  /// parameters of 28 bytes in 1.834 s by a Grace of 512 GB/s (DeepSpeed,
  /// blogs/deepspeed-superoffload, figure 5, PT-CPU).
  double host_adam = 0.239;
  // Set for the formats of a plan (parameter_formats.hpp), not by files.
  double held_weight_bytes = 2.0;  ///< Weights that products read, per parameter held.
  double state_bytes = 12.0;       ///< Masters and Adam's two moments, per parameter updated.

  EagerKernels eager_kernels;
  /// Rate of norm kernels relative to plain copies; docs/explanation/layers.md counts their bytes.
  double norm_forward_efficiency = 1.0, norm_backward_efficiency = 1.0;
  double gemm_efficiency = 1.0;          ///< GEMM library relative to the calibrated one.
  double attention_efficiency = 1.0;     ///< Attention kernel, likewise.
  double batched_gemm_efficiency = 0.3;  ///< Unfused attention's score GEMMs, share of peak.
  Seconds kernel_overhead;               ///< Gap between two kernels on the GPU.
  Seconds host_launch;                   ///< Host time of a launch: lower bound of a kernel's time.

  /// Idle time of the GPU for each token of a micro-batch, where the host goes through the tokens
  /// one by one and reads each from the GPU before it knows the loss.
  Seconds loss_wait{};
  /// Idle time of the GPU for each adapter in a forward pass, whose host reads from the GPU which
  /// tokens belong to it and then launches the next kernels.
  Seconds adapter_wait{};
  /// LoRA's adapters run in few kernels of their own (sim/layers/adapters.hpp).
  bool fused_adapters = false;
  /// Efficiency, relative to plain copies, of the kernels that make 16 bits of weights of four,
  /// which a library has and not the framework. Inferred from QLoRA of a 7B model on one A100 with
  /// GPTQ's kernels of 2023 (Qwen README, Profiling of Memory and Speed): 11.5 ps a weight, where
  /// copies of the same bytes would take 1.4. torchtune's nf4 of 2024 reaches 0.14 on an RTX 4090
  /// (its README: 2,413 tokens/s of Llama 3.1 8B, 3,083 without, three passes of 4,096 tokens);
  /// another library may be three times as fast.
  double dequantise_efficiency = 0.11;
  ExpertLayerHost expert_layer_host;  ///< Times of an x86 host.
  /// Factor on it if two micro-batches' layers are launched in turn (ep_overlap).
  double overlapped_host = 1.0;
  CudaGraphs cuda_graphs = CudaGraphs::none;  ///< Default of the plan.

  bool frees_outputs = true;  ///< Sent outputs are not kept for the backward pass.

  std::vector<Support> support;  ///< Limits on a plan's values.
  int interleaved_from = 2;      ///< Fewest stages that may have several chunks.

  std::optional<JsonValue> document;  ///< The document that it was read from.

  bool operator==(const Software&) const = default;
  /// gemm_efficiency of a narrow format; fp8's is that of its scaling.
  double narrow_gemm_efficiency(Dtype format) const;
  bool overlaps_tp() const { return overlap_tp_gradients || tp_hidden > 0.0; }
};

/// The software without host time for parts in CUDA graphs. The host still launches every kernel of
/// layers without experts if only parts are in graphs.
Software captured(CudaGraphs graphs, Software software);

/// `word`: a name in workloads/software or a path.
Software read_software(const std::string& word, const Place& at);
Software parse_software(const JsonValue& json);  ///< The same for an open document.

}  // namespace orrery
