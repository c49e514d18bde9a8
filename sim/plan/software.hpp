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

/// The values that a software has of one key of a plan; of a key without an entry it has all.
struct Support {
  const PlanKey* key = nullptr;
  std::vector<std::string> words;  ///< As a flag would say them.
  bool of_state = false;           ///< What is kept of a parameter: main_params and the like.

  bool operator==(const Support&) const = default;
  /// Whether `word` is one of them, what refines it (":core_attn+mlp") left out.
  bool has(const std::string& word) const;
};

/// Reads {"zero": {"value": [0, 1], "source": "..."}, "schedule": ...}. Errors: what is no key
/// of a plan, no values, a value that is none.
std::vector<Support> read_support(const JsonValue& json);

/// Refuses a plan that has a value which the software has not.
MaybeRefused check_support(const Software& software, const Plan& plan);

/// Whether some plan may have this value of `key`, written as a flag.
bool supports(const Software& software, const std::string& key, const std::string& value);

/// What `recompute=selective` computes again.
enum class SelectiveRecompute {
  core_attention,  ///< Korthikanti et al. 2022, section 5: scores, softmax and values.
  /// Everything but attention and every other product, counted from the first: of Llama's seven
  /// keys, the output projection and the MLP's second input (torchtitan, "op").
  alternate_products
};

/// How long the host needs for the parts of an eager layer with experts in a forward pass: Python,
/// checks, allocations and launches. A backward pass takes it as long again. Zero: nothing is known
/// but launches, or a CUDA graph makes them.
struct ExpertLayerHost {
  Seconds attention;  ///< All before the second norm.
  Seconds router;     ///< Scores, and who goes where.
  Seconds exchange;   ///< A dispatch or a combine.
  Seconds expert;     ///< The products of one expert.

  bool operator==(const ExpertLayerHost&) const = default;
};

/// What fp8 costs beside `quantise_bytes`.
struct Fp8Scaling {
  /// A scale for each row of an operand, counted along what its product sums over, and not one for
  /// the whole. Then `quantise_bytes` make one direction, forward products' and input gradients';
  /// the other direction, which weight gradients need, is made of the 16-bit tensor when they do;
  /// and what tensor parallelism gathers is sent in 16 bits and quantised where it arrives.
  bool by_rows = false;
  double columns_bytes = 0.0;    ///< by_rows: per element, the other direction.
  double gemm_efficiency = 1.0;  ///< Of products in 8 bits, relative to the calibrated ones.
  /// Per weight of a layer and pass that multiplies by it: forward (and where that is computed
  /// again), and backward. 0: quantised once a step, which is not counted.
  double forward_weight_bytes = 0.0, backward_weight_bytes = 0.0;

  bool operator==(const Fp8Scaling&) const = default;
};

/// What runs kernel by kernel, as eager PyTorch writes it; else each is one kernel.
struct EagerKernels {
  bool rms_norm = false, rotary = false, gated_activation = false;
  bool scaled_rotary = false;  ///< Positions that scale as well (Model::scaled_rotary).

  bool operator==(const EagerKernels&) const = default;
};

/// What differs in fp32 and tf32. The rest follows (parameter_formats.hpp).
struct Fp32Training {
  bool fused_attention = false;  ///< false: a fused kernel has 16 bits only.
  double logit_forward_bytes = 0.0, logit_backward_bytes = 0.0, logit_held_bytes = 0.0;
  double unshard_bytes = 0.0, reduce_copy_bytes = 0.0;

  bool operator==(const Fp32Training&) const = default;
};

/// What a training framework of some era does with the same mathematics: which passes over memory
/// it makes, what it overlaps, in which precision it reduces. Files in workloads/software say where
/// each figure is from. Byte counts are HBM traffic, reads and writes together.
struct Software {
  std::string name;
  std::string title;

  Dtype dtype = Dtype::bf16;       ///< Where the plan names none.
  bool sequence_parallel = false;  ///< Where the plan does not say.
  int zero = 0;                    ///< Where the plan does not say.

  bool fused_attention = true;  ///< false: the score matrix is written to memory.
  /// Whose kernels fused attention takes where they were measured; none: those of the tables.
  std::optional<AttentionLibrary> attention_library;
  bool deterministic = false;  ///< Transformer Engine's attention gives the same bits each time.
  bool dropout = false;        ///< On attention scores and on both residual branches.
  /// false: bias gradients and changes of the q, k, v layout are passes of their own.
  bool fused_bias_gradients = true;
  bool scatter_gather = true;         ///< Pipeline transfers carry 1/tp of the tensor a rank.
  bool early_recompute_stop = false;  ///< Recomputation ends with the last tensor that is needed.
  /// Queries, keys and values are one product, and so are both inputs of a gated MLP; else each is
  /// one of its own, and the gradients that they bring to their common input are summed up.
  bool fused_projections = true;
  /// With sequence parallelism a column-parallel layer keeps a rank's share of its input and
  /// gathers it again for its weight gradient; else it keeps what it gathered.
  bool gathers_inputs_again = true;
  /// Queries are a view of a copy of all three, which lives as long as they do, while keys and
  /// values are copied once more; only where there are as many of these as queries.
  bool keeps_packed_qkv = false;
  SelectiveRecompute selective_recompute = SelectiveRecompute::core_attention;
  /// Where the plan does not say: a step has as many micro-batches as stages, else of one sequence.
  bool microbatches_are_stages = false;

  /// Input-gradient all-reduce beside the weight-gradient GEMM.
  bool overlap_tp_gradients = false;
  double tp_hidden = 0.0;   ///< Share of tensor-parallel traffic pipelined into the GEMMs.
  bool tp_overlap = true;   ///< Whether both happen where the plan does not say.
  bool overlap_pp = false;  ///< Stage transfers run beside compute.
  bool overlap_dp = false;  ///< Gradient reduction beside the last backward pass.
  /// Likewise where the optimizer's state is sharded (ZeRO-1); false: not then.
  bool overlap_dp_sharded = true;
  /// ZeRO-1 sums up all gradients on all ranks, and each rank uses its share of them; else each
  /// gets the sum of its share.
  bool reduces_to_all = false;
  /// Of the host, for each weight and each rank's share of it, where ZeRO-1's weights are gathered
  /// after the update and one tensor at a time.
  double gather_calls = 0.0;
  /// Without ZeRO, beside passes: gradients are reduced in buckets of as many bytes in 16 bits
  /// (0: as Megatron-LM's), of which a copy is held, of so many bytes a parameter.
  Bytes bucket_size;
  double bucket_copy_bytes = 0.0;
  /// Experts have an optimizer of their own, and each of the two gathers all weights where gathers
  /// are waited for.
  bool optimizers_gather_all = false;
  /// No stage waits for the norm of all gradients: each updates its weights with what the stages
  /// before it sent, and a step that turns out wrong is undone (Qi et al., arXiv 2401.10241,
  /// section 4). So a stage's next step follows its own last one at once.
  bool optimizer_post_validation = false;

  double accumulate_bytes = 8.0;       ///< Per parameter and micro-batch: into main gradients.
  double logit_forward_bytes = 12.0;   ///< Per logit: cross-entropy forward.
  double logit_backward_bytes = 12.0;  ///< Per logit: cross-entropy backward.
  double logit_held_bytes = 6.0;       ///< Per logit: memory at the peak of its cross-entropy.
  double optimizer_bytes = 40.0;       ///< Per parameter updated.
  double loss_scaling_bytes = 0.0;     ///< The same, in fp16 alone, where it is not among these.
  /// Per parameter held and step: gradients set to zero, checked and scaled before they are
  /// reduced.
  double gradient_pass_bytes = 0.0;
  /// One kernel multiplies for all experts of a rank, and applies and quantises their activation;
  /// else one for each, and others between them.
  bool fused_experts = false;
  /// One kernel multiplies for all experts of a rank, and does nothing else.
  bool grouped_experts = false;
  /// Buffers of experts have a fixed size, so that what the backward pass needs is copied out of
  /// them and back.
  bool stashes_experts = false;
  /// Of the rate of plain copies: kernels that bring tokens into the order of their experts.
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
  double weight_bytes = 2.0;  ///< Per parameter on the wire when weights are gathered.
  /// Per parameter: copies out of the buffer that weights are gathered in, and into the one that
  /// gradients are reduced from.
  double unshard_bytes = 0.0;
  double reduce_copy_bytes = 0.0;
  bool shards_by_tensor = false;  ///< Weights are gathered matrix by matrix, not layer by layer.
  double shard_calls = 0.0;       ///< Of the host, for each rank, before each such collective.
  /// Weights are gathered ahead only while fewer parameters than these are whole.
  double live_parameters = std::numeric_limits<double>::infinity();
  double gradient_bytes = 4.0;       ///< Per parameter on the wire when gradients are reduced.
  double main_gradient_bytes = 4.0;  ///< Per parameter held: the gradient buffer.
  // As the formats of a plan have it (parameter_formats.hpp); files do not say it.
  double held_weight_bytes = 2.0;  ///< Per parameter held: what products read.
  double state_bytes = 12.0;       ///< Per parameter updated: masters and Adam's two moments.

  EagerKernels eager_kernels;
  /// Of the rate of plain copies: kernels of norms, where their bytes are counted
  /// (docs/explanation/layers.md).
  double norm_forward_efficiency = 1.0, norm_backward_efficiency = 1.0;
  double gemm_efficiency = 1.0;          ///< Of its GEMM library relative to the calibrated one.
  double attention_efficiency = 1.0;     ///< Of its attention kernel, likewise.
  double batched_gemm_efficiency = 0.3;  ///< Of peak: the score GEMMs of unfused attention.
  Seconds kernel_overhead;               ///< Between two kernels on the GPU.
  Seconds host_launch;  ///< The host's time for a launch: a floor where kernels are shorter.

  ExpertLayerHost expert_layer_host;  ///< Likewise, of an x86 host.
  /// How much longer that takes where two micro-batches' layers are launched by turns (ep_overlap).
  double overlapped_host = 1.0;
  CudaGraphs cuda_graphs = CudaGraphs::none;  ///< Where the plan does not say.

  bool frees_outputs = true;  ///< What a stage sent is not kept for its backward pass.

  std::vector<Support> support;  ///< What a plan may ask of it.
  int interleaved_from = 2;      ///< Fewest stages that may have several chunks.

  std::optional<JsonValue> document;  ///< What it was read from.

  bool operator==(const Software&) const = default;
  /// The same of any narrow format; fp8's is that of its scaling.
  double narrow_gemm_efficiency(Dtype dtype) const;
  bool overlaps_tp() const { return overlap_tp_gradients || tp_hidden > 0.0; }
};

/// The same without host time for what is in graphs. Of a layer without experts, parts of which are
/// in graphs, the host still launches every kernel.
Software captured(CudaGraphs graphs, Software software);

/// `word`: a name in workloads/software or a path.
Software read_software(const std::string& word, const Place& at);
Software parse_software(const JsonValue& json);  ///< The same of a document that is already open.

}  // namespace orrery
