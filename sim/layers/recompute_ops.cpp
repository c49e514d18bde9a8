#include "sim/layers/recompute_ops.hpp"

#include <algorithm>

#include "sim/layers/attention_ops.hpp"
#include "sim/layers/expert_ops.hpp"
#include "sim/layers/latent_attention_ops.hpp"
#include "sim/layers/layer_ops.hpp"

namespace orrery {
namespace {

Ops full_recompute(const Scenario& scenario, LayerKind kind) {
  Ops ops = layer_forward(scenario, kind);
  if (scenario.software.early_recompute_stop) {
    // Nothing after the last activation is needed again: its output is the next product's saved
    // input.
    const auto last = std::find_if(ops.rbegin(), ops.rend(),
                                   [](const Op& op) { return op.name == "activation"; });
    ops.erase(last.base(), ops.end());
  }
  return ops;
}

// What layers of all kinds have before their second block.
Ops attention_parts(const Scenario& scenario, LayerKind kind) {
  const LayerSizes s{scenario};
  const RecomputeChoice& choice = s.plan.recompute;
  Ops ops;
  const bool second_norm = !s.model.parallel_residual || s.model.norms_per_layer > 1;
  if (choice.selects(RecomputeModule::layernorm)) append(ops, norm_forward(s));
  if (choice.selects(RecomputeModule::mla_up_proj) && s.model.latent)
    append(ops, latent_up_forward(s));
  if (choice.selects(RecomputeModule::core_attn))
    append(ops, core_attention_forward(scenario, kind));
  if (choice.selects(RecomputeModule::layernorm) && second_norm) append(ops, norm_forward(s));
  return ops;
}

}  // namespace

Ops recompute_beside_exchanges(const Scenario& scenario, LayerKind kind,
                               std::span<const std::int64_t> rows) {
  const LayerSizes s{scenario};
  const RecomputeChoice& choice = s.plan.recompute;
  Ops ops = attention_parts(scenario, kind);
  if (choice.selects(RecomputeModule::moe_act)) append(ops, routed_activation(s, rows));
  if (choice.selects(RecomputeModule::shared_experts)) append(ops, shared_experts_forward(s));
  return ops;
}

Ops layer_recompute(const Scenario& scenario, LayerKind kind) {
  const LayerSizes s{scenario};
  const RecomputeChoice& choice = s.plan.recompute;
  if (kind.kept) return {};
  if (choice.kind == Recompute::full) return full_recompute(scenario, kind);
  if (choice == Recompute::selective &&
      s.software.selective_recompute == SelectiveRecompute::alternate_products)
    return alternate_products(s);
  if (kind.has_experts) {
    Ops ops = recompute_beside_exchanges(scenario, kind, even_rows(s));
    if (choice.selects(RecomputeModule::moe)) append(ops, experts_forward(s));
    return ops;
  }
  Ops ops = attention_parts(scenario, kind);
  if (choice.selects(RecomputeModule::mlp)) {
    Ops mlp = mlp_forward(s);
    // What is reduced in a parallel block is the sum of both branches, which nobody needs again.
    if (s.model.parallel_residual)
      std::erase_if(mlp, [](const Op& op) { return op.name == "tp_reduce"; });
    append(ops, mlp);
  }
  return ops;
}

}  // namespace orrery
