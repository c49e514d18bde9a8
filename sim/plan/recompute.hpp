#pragma once

#include <set>
#include <string>
#include <vector>

#include "sim/core/json_value.hpp"

namespace orrery {

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
