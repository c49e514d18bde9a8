#pragma once

#include <set>
#include <string>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/core/enum_words.hpp"
#include "sim/core/json_value.hpp"

namespace orrery {

/// Scope of CUDA graphs: none; the router of a layer with experts, its attention, or both
/// (Megatron-LM's --cuda-graph-scope moe_router and attn); the step (full_iteration).
enum class CudaGraphs { none, router, attention, attention_router, step };
template <>
inline const std::vector<std::string> enum_words<CudaGraphs>{"none", "router", "attention",
                                                             "attention+router", "step"};

/// Implementation of dispatch and combine of tokens between ranks with experts.
enum class ExpertDispatcher {
  all_to_all,          ///< NCCL: a copy for each of a token's experts, pairwise.
  all_gather,          ///< NCCL: all tokens to all ranks; results are reduce-scattered.
  hierarchical,        ///< NCCL all-to-all in two hops: inside the domain, then along the rails.
  deepep,              ///< DeepEP's normal kernels: once for each domain, forwarded over NVLink.
  deepep_low_latency,  ///< DeepEP's low-latency kernels: pairwise, by the GPUs themselves.
  hybridep             ///< NVIDIA's Hybrid-EP: as deepep, with bulk copies by few multiprocessors.
};
template <>
inline const std::vector<std::string> enum_words<ExpertDispatcher>{
    "alltoall", "allgather", "hierarchical", "deepep", "deepep_low_latency", "hybridep"};

/// A token is sent as it is, and copied for its experts where it arrives; the others send a copy
/// for each of its experts (Megatron Core, token_dispatcher.py, MoEFlexTokenDispatcher).
bool copies_on_arrival(ExpertDispatcher dispatcher);

/// Master weights of the optimizer if products read weights of 16 bits or less.
enum class MainParams {
  fp32,        ///< A copy of each weight.
  remainders,  ///< The lower 16 bits of it: the upper ones are the bf16 weight itself.
  bf16,        ///< A copy in 16 bits.
  fp16,        ///< Likewise.
  none         ///< The weights themselves.
};
template <>
inline const std::vector<std::string> enum_words<MainParams>{"fp32", "remainders", "bf16", "fp16",
                                                             "none"};

enum class Recompute { none, selective, full };
template <>
inline const std::vector<std::string> enum_words<Recompute>{"none", "selective", "full"};

/// Parts of a layer that are computed again alone, by Megatron Core's names
/// (--recompute-modules; transformer/transformer_config.py).
enum class RecomputeModule {
  core_attn,       ///< Attention from queries, keys and values.
  layernorm,       ///< Both norms.
  mla_up_proj,     ///< Latent attention's up-projections and positions.
  mlp,             ///< A dense layer's MLP.
  moe_act,         ///< The routed experts' activation.
  shared_experts,  ///< The shared experts' MLP.
  moe,             ///< Everything between a layer of experts' second norm and residual sum.
};
template <>
inline const std::vector<std::string> enum_words<RecomputeModule>{
    "core_attn", "layernorm", "mla_up_proj", "mlp", "moe_act", "shared_experts", "moe"};

/// Parts of a layer whose inputs wait for the backward pass in the host's memory, by Megatron
/// Core's names (--offload-modules; user guide, fine-grained activation offloading).
enum class OffloadModule {
  attn_norm,        ///< The input of attention's layer.
  qkv_linear,       ///< The output of its norm.
  core_attn,        ///< Queries, keys and values.
  attn_proj,        ///< Attention's output; only with core_attn, which needs it as well.
  mlp_norm,         ///< The input of the feed-forward part's layer.
  expert_fc1,       ///< The rows of routed experts.
  moe_act,          ///< The input of their activation.
  fused_group_mlp,  ///< All that routed experts keep.
};
template <>
inline const std::vector<std::string> enum_words<OffloadModule>{
    "attn_norm", "qkv_linear", "core_attn", "attn_proj",
    "mlp_norm",  "expert_fc1", "moe_act",   "fused_group_mlp"};
using OffloadModules = std::set<OffloadModule>;

/// "none", "core_attn+attn_proj".
std::string offload_text(const OffloadModules& modules);
/// Reads the same; "," does as well as "+". Errors: an unknown word.
OffloadModules read_offload(const JsonValue& value);

/// Recomputation in the backward pass. Selective without a list is SelectiveRecompute, mostly the
/// attention core (Korthikanti et al., arXiv 2205.05198, section 5).
struct RecomputeChoice {
  Recompute kind = Recompute::none;
  std::set<RecomputeModule> modules = {};  ///< Selective only; empty: the software's default.
  /// Full only: the first layers of each virtual stage, while the others keep theirs (Megatron
  /// Core's recompute_method block, recompute_num_layers); 0: all.
  int layers = 0;

  RecomputeChoice(Recompute of = Recompute::none) : kind{of} {}  // NOLINT: a kind is a choice
  RecomputeChoice(std::set<RecomputeModule> of)                  // NOLINT
      : kind{Recompute::selective}, modules{std::move(of)} {}

  bool operator==(const RecomputeChoice&) const = default;
  /// True if `module` is among the parts of a selective choice.
  bool selects(RecomputeModule module) const;
};

/// "none", "selective", "selective:moe_act+mla_up_proj", "full", "full:5".
std::string recompute_text(const RecomputeChoice& choice);
/// Reads the same; between modules "," does as well as "+". "attn_only", "norm" and "act" are what
/// publications write for core_attn, layernorm and moe_act, "per-op sac" what torchtitan does
/// without a list. Errors: an unknown word.
RecomputeChoice read_recompute(const JsonValue& value);

}  // namespace orrery
