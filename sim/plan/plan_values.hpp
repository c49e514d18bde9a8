#pragma once

#include <set>
#include <string>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/core/json_value.hpp"

namespace orrery {

/// What is launched as CUDA graphs: nothing; of a layer with experts the router, its attention, or
/// both (Megatron-LM's --cuda-graph-scope moe_router and attn); the step (full_iteration).
enum class CudaGraphs { none, router, attention, attention_router, step };

/// "none", "router", "attention", "attention+router", "step".
const std::vector<std::string>& cuda_graph_names();

/// How the tokens of one layer reach the ranks that hold their experts, and come back.
enum class ExpertDispatcher {
  all_to_all,          ///< NCCL: a copy for each of a token's experts, pairwise.
  all_gather,          ///< NCCL: all tokens to all ranks; results are reduce-scattered.
  hierarchical,        ///< NCCL all-to-all in two hops: inside the domain, then along the rails.
  deepep,              ///< DeepEP's normal kernels: once for each domain, forwarded over NVLink.
  deepep_low_latency,  ///< DeepEP's low-latency kernels: pairwise, by the GPUs themselves.
  hybridep             ///< NVIDIA's Hybrid-EP: as deepep, with bulk copies by few multiprocessors.
};
const std::vector<std::string>& expert_dispatcher_names();
const std::string& name(ExpertDispatcher dispatcher);

/// A token is sent as it is, and copied for its experts where it arrives; the others send a copy
/// for each of its experts (Megatron Core, token_dispatcher.py, MoEFlexTokenDispatcher).
bool copies_on_arrival(ExpertDispatcher dispatcher);

/// What the optimizer updates where products read weights of 16 bits or less.
enum class MainParams {
  fp32,        ///< A copy of each weight.
  remainders,  ///< The lower 16 bits of it: the upper ones are the bf16 weight itself.
  bf16,        ///< A copy in 16 bits.
  fp16,        ///< Likewise.
  none         ///< The weights themselves.
};
inline const std::vector<std::string>& main_params_names() {
  static const std::vector<std::string> names{"fp32", "remainders", "bf16", "fp16", "none"};
  return names;
}

/// What is kept of a parameter beside its gradient: as the user says it and as a plan has it.
struct OptimizerState {
  MainParams main_params = MainParams::fp32;
  Dtype exp_avg = Dtype::fp32, exp_avg_sq = Dtype::fp32;  ///< Adam's moments.
  /// In fp8 and mxfp8: linear layers' weights are kept and gathered in 8 bits, not in 16.
  bool fp8_params = false;

  bool operator==(const OptimizerState&) const = default;
};

enum class Recompute { none, selective, full };
const std::vector<std::string>& recompute_names();  ///< "none", "selective", "full"
const std::string& name(Recompute recompute);

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
const std::vector<std::string>& recompute_module_names();
const std::string& name(RecomputeModule module);
const std::vector<RecomputeModule>& all_recompute_modules();

/// What a plan computes again in the backward pass. Selective without a list is what the software
/// means by it (SelectiveRecompute), mostly the attention core (Korthikanti et al., arXiv
/// 2205.05198, section 5).
struct RecomputeChoice {
  Recompute kind = Recompute::none;
  std::set<RecomputeModule> modules = {};  ///< Of selective; empty: as the software means it.
  /// Of full: the first layers of each virtual stage, and the others keep theirs (Megatron Core's
  /// recompute_method block, recompute_num_layers); 0: all.
  int layers = 0;

  RecomputeChoice(Recompute of = Recompute::none) : kind{of} {}  // NOLINT: a kind is a choice
  RecomputeChoice(std::set<RecomputeModule> of)                  // NOLINT
      : kind{Recompute::selective}, modules{std::move(of)} {}

  bool operator==(const RecomputeChoice&) const = default;
  /// Whether `module` is among the parts of a selective choice.
  bool selects(RecomputeModule module) const;
};

/// "none", "selective", "selective:moe_act+mla_up_proj", "full", "full:5".
std::string recompute_text(const RecomputeChoice& choice);
/// Reads the same; between modules "," does as well as "+". "attn_only", "norm" and "act" are what
/// publications write for core_attn, layernorm and moe_act, "per-op sac" what torchtitan does
/// without a list. Errors: an unknown word.
RecomputeChoice read_recompute(const JsonValue& value);

}  // namespace orrery
