#include "sim/layers/layer_ops.hpp"

#include <algorithm>

#include "sim/layers/attention_ops.hpp"
#include "sim/layers/expert_ops.hpp"
#include "sim/layers/layer_parts.hpp"
#include "sim/layers/op_work.hpp"
#include "sim/layers/state_ops.hpp"

namespace orrery {

using Sizes = LayerSizes;

Ops norm_forward(const Sizes& s) { return {norm_op(s, "norm", s.own_tensor, false)}; }
Ops norm_backward(const Sizes& s) { return {norm_op(s, "norm_bwd", s.own_tensor, true)}; }

namespace {

// x + dropout(y + bias): reads x and y, writes the sum and a one-byte mask. Without dropout: reads
// two tensors, writes one.
Ops residual_forward(const Sizes& s) {
  return {memory("residual", (3.0 * s.element + (s.software.dropout ? 1.0 : 0.0)) * s.own_tensor)};
}
// Dropout's gradient (read, a byte of mask, written), bias gradient (read), sum with the residual's
// (two read, one written).
Ops residual_backward(const Sizes& s) {
  const double bytes = s.software.dropout ? 6.0 * s.element + 1.0 : 3.0 * s.element;
  return {memory("residual_bwd", bytes * s.own_tensor)};
}

double queries_and_keys(const Sizes& s) {
  return s.of_tokens((s.heads + s.kv_heads) * s.model.head_dim);
}

Ops activation_forward(const Sizes& s) {
  return {activation_op(s, "activation", s.of_tokens(s.ffn), false)};
}
Ops activation_backward(const Sizes& s) {
  Ops ops{activation_op(s, "activation_bwd", s.of_tokens(s.ffn), true)};
  if (!s.software.fused_bias_gradients && s.model.mlp_bias)
    ops.push_back(memory("bias_grad", s.element * s.of_tokens(s.ffn)));
  return ops;
}

// Operations between queries, keys and values and the heads' outputs.
Ops heads_forward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario, kind};
  Ops ops;
  if (s.model.qk_norm) ops.push_back(norm_op(s, "qk_norm", queries_and_keys(s), false));
  if (s.model.rotary) ops.push_back(rotary_op(s, "rope", queries_and_keys(s), false));
  if (!s.plan.fused_attention)
    ops.push_back(memory("transpose", 2.0 * s.element * s.of_tokens(s.head_width)));
  append(ops, core_attention_forward(scenario, kind));
  // The gate and the output are read, their product is written; backward reads the gradient too,
  // and writes those of both.
  if (s.model.output_gate)
    ops.push_back(memory("output_gate", 3.0 * s.element * s.of_tokens(s.head_width)));
  return ops;
}

Ops heads_backward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario, kind};
  Ops ops;
  if (s.model.output_gate)
    ops.push_back(memory("output_gate_bwd", 5.0 * s.element * s.of_tokens(s.head_width)));
  append(ops, core_attention_backward(scenario, kind));
  if (!s.plan.fused_attention)
    ops.push_back(memory("transpose_bwd", 6.0 * s.element * s.of_tokens(s.head_width)));
  if (s.model.rotary) ops.push_back(rotary_op(s, "rope_bwd", queries_and_keys(s), true));
  if (s.model.qk_norm) ops.push_back(norm_op(s, "qk_norm_bwd", queries_and_keys(s), true));
  if (!s.software.fused_bias_gradients && s.model.qkv_bias)
    ops.push_back(memory("bias_grad", s.element * s.of_tokens(sum_of(s.qkv_products()))));
  return ops;
}

Linears qkv(const Sizes& s) {
  Linears all;
  for (const std::int64_t width : s.qkv_products())
    all.push_back({"qkv", "qkv_dgrad", "qkv_wgrad", width});
  return all;
}
Linear proj(const Sizes& s) { return {"proj", "proj_dgrad", "proj_wgrad", s.head_width}; }
Linears fc1(const Sizes& s) {
  Linears all;
  for (const std::int64_t width : s.fc1_products())
    all.push_back({"fc1", "fc1_dgrad", "fc1_wgrad", width});
  return all;
}
Linear fc2(const Sizes& s) { return {"fc2", "fc2_dgrad", "fc2_wgrad", s.ffn}; }

// A mixer with a state, attention, or one after the other of the same input.
Ops mixer_forward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario, kind};
  Ops ops;
  if (s.model.mixer) ops = state_mixer_forward(s);
  if (s.model.heads == 0) return ops;
  if (s.model.latent) {
    append(ops, latent_attention_forward(s, core_attention_forward(scenario, kind)));
    return ops;
  }
  append(ops, column_parallel_forward(s, qkv(s)));
  append(ops, heads_forward(scenario, kind));
  append(ops, row_parallel_forward(s, {proj(s)}));
  return ops;
}

Ops mixer_backward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario, kind};
  Ops ops;
  if (s.model.mixer) ops = state_mixer_backward(s);
  if (s.model.heads == 0) return ops;
  if (s.model.latent) {
    append(ops, latent_attention_backward(s, core_attention_backward(scenario, kind)));
    return ops;
  }
  append(ops, row_parallel_backward(s, {proj(s)}));
  append(ops, heads_backward(scenario, kind));
  append(ops, column_parallel_backward(s, qkv(s)));
  return ops;
}

}  // namespace

Ops mlp_forward(const Sizes& s) {
  Ops ops = column_parallel_forward(s, fc1(s));
  append(ops, activation_forward(s));
  append(ops, row_parallel_forward(s, {fc2(s)}));
  return ops;
}

namespace {

Ops mlp_backward(const Sizes& s) {
  Ops ops = row_parallel_backward(s, {fc2(s)});
  append(ops, activation_backward(s));
  append(ops, column_parallel_backward(s, fc1(s)));
  return ops;
}

// A parallel block's products with the same input as fc1.
Linears fc1_and_peers(const Sizes& s) {
  Linears all = fc1(s);
  if (s.model.norms_per_layer == 1)
    for (const Linear& one : qkv(s)) all.push_back(one);
  return all;
}

// Both blocks read the layer's input and their results are added to it together: a normalised
// tensor that both read is gathered once, and its gradients are reduced once; the two row-parallel
// sums always travel as one. A collective is pipelined into the wider of the products.
Ops parallel_forward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario, kind};
  Ops ops = norm_forward(s);
  if (s.model.norms_per_layer > 1) {
    append(ops, norm_forward(s));
    append(ops, column_parallel_forward(s, qkv(s)));
  }
  append(ops, column_parallel_forward(s, fc1_and_peers(s)));
  append(ops, heads_forward(scenario, kind));
  append(ops, activation_forward(s));
  append(ops, row_parallel_forward(s, {proj(s), fc2(s)}));
  append(ops, residual_forward(s));
  return ops;
}

Ops parallel_backward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario, kind};
  Ops ops = residual_backward(s);
  append(ops, row_parallel_backward(s, {fc2(s), proj(s)}));
  append(ops, activation_backward(s));
  append(ops, heads_backward(scenario, kind));
  if (s.model.norms_per_layer > 1) {
    append(ops, column_parallel_backward(s, qkv(s)));
    append(ops, norm_backward(s));
    ops.push_back(memory("input_grad_sum", 3.0 * s.element * s.own_tensor));
  }
  append(ops, column_parallel_backward(s, fc1_and_peers(s)));
  append(ops, norm_backward(s));
  return ops;
}

// A mixer with its norm and residual sum.
Ops mixer_block_forward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario, kind};
  if (!has_mixer(s.model)) return {};
  Ops ops = norm_forward(s);
  append(ops, mixer_forward(scenario, kind));
  append(ops, residual_forward(s));
  return ops;
}

Ops mixer_block_backward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario, kind};
  if (!has_mixer(s.model)) return {};
  Ops ops = residual_backward(s);
  append(ops, mixer_backward(scenario, kind));
  append(ops, norm_backward(s));
  return ops;
}

}  // namespace

Ops layer_forward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario, kind};
  if (s.model.parallel_residual) return parallel_forward(scenario, kind);
  Ops ops = mixer_block_forward(scenario, kind);
  if (!has_feed_forward(s.model)) return ops;
  append(ops, norm_forward(s));
  append(ops, kind.has_experts ? experts_forward(s) : mlp_forward(s));
  append(ops, residual_forward(s));
  return ops;
}

Ops layer_backward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario, kind};
  if (s.model.parallel_residual) return parallel_backward(scenario, kind);
  Ops ops;
  if (has_feed_forward(s.model)) {
    ops = residual_backward(s);
    append(ops, kind.has_experts ? experts_backward(s) : mlp_backward(s));
    append(ops, norm_backward(s));
  }
  append(ops, mixer_block_backward(scenario, kind));
  return ops;
}

Ops alternate_products(const Sizes& s) {
  const std::int64_t keys = s.kv_heads * s.model.head_dim;
  Ops ops = norm_forward(s);
  append(ops, column_parallel_forward(s, {{"keys", "", "", keys}}));
  if (s.model.qk_norm) ops.push_back(norm_op(s, "qk_norm", queries_and_keys(s), false));
  if (s.model.rotary) ops.push_back(rotary_op(s, "rope", queries_and_keys(s), false));
  append(ops, row_parallel_forward(s, {proj(s)}));
  append(ops, residual_forward(s));
  append(ops, norm_forward(s));
  if (s.model.gated)
    append(ops, column_parallel_forward(s, {{"fc1_second", "", "", s.ffn}}));
  else
    append(ops, gather(s, "tp_gather", pipelined(s)));
  append(ops, activation_forward(s));
  return ops;
}

LayerEnds layer_ends_forward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario, kind};
  SharedOps shared = shared_overlap_forward(s);
  LayerEnds ends{mixer_block_forward(scenario, kind), std::move(shared.during_dispatch),
                 std::move(shared.during_combine), after_experts_forward(s)};
  append(ends.before, norm_forward(s));
  append(ends.before, before_experts_forward(s));
  append(ends.before, shared.before);
  append(ends.after, shared.after);
  append(ends.after, residual_forward(s));
  return ends;
}

LayerEnds layer_ends_backward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario, kind};
  SharedOps shared = shared_overlap_backward(s);
  LayerEnds ends{residual_backward(s), std::move(shared.during_dispatch),
                 std::move(shared.during_combine), after_experts_backward(s)};
  append(ends.before, before_experts_backward(s));
  append(ends.before, shared.before);
  append(ends.after, shared.after);
  append(ends.after, norm_backward(s));
  append(ends.after, mixer_block_backward(scenario, kind));
  return ends;
}

Ops embedding_forward(const Scenario& scenario) {
  const Sizes s{scenario};
  // Row look-up (one read, one written); learned positions are added (two read, one written).
  const double rows = s.model.learned_positions > 0 ? 5.0 : 2.0;
  Ops ops{memory("embedding", rows * s.element * s.tensor)};
  append(ops, reduce(s, "tp_reduce", 0.0));
  if (s.software.dropout) ops.push_back(memory("dropout", (2.0 * s.element + 1.0) * s.own_tensor));
  return ops;
}

Ops embedding_backward(const Scenario& scenario) {
  const Sizes s{scenario};
  if (!s.plan.trains_tables()) return {};
  Ops ops = gather(s, "tp_gather_grad", 0.0);
  // Each token's gradient (read) is added to an fp32 row of its table (4 read, 4 written).
  const double tables = s.model.learned_positions > 0 ? 2.0 : 1.0;
  ops.push_back(memory("embedding_bwd", tables * (s.element + 8.0) * s.tensor));
  return ops;
}

Ops prediction_forward(const Scenario& scenario) {
  const Sizes s{scenario};
  Ops ops = embedding_forward(scenario);
  append(ops, norm_forward(s));
  append(ops, norm_forward(s));
  ops.push_back(memory("join_inputs", 4.0 * s.element * s.own_tensor));
  append(ops, gather(s, "tp_gather", 0.0, 2 * s.hidden));
  ops.push_back(gemm("join", GemmPass::forward, s.tokens, s.hidden / s.plan.tp, 2 * s.hidden));
  append(ops, gather(s, "tp_gather_output", 0.0));
  return ops;
}

Ops prediction_backward(const Scenario& scenario) {
  const Sizes s{scenario};
  const std::int64_t own = s.hidden / s.plan.tp;
  Ops ops = gather(s, "tp_gather_grad", 0.0);
  ops.push_back(gemm("join_dgrad", GemmPass::dgrad, s.tokens, 2 * s.hidden, own));
  append(ops, reduce(s, "tp_reduce_grad", 0.0, 2 * s.hidden));
  append_weight_gradient(s, ops, gemm("join_wgrad", GemmPass::wgrad, own, 2 * s.hidden, s.tokens),
                         own, 2 * s.hidden);
  append(ops, norm_backward(s));
  append(ops, norm_backward(s));
  append(ops, embedding_backward(scenario));
  return ops;
}

namespace {

// Frameworks leave the output layer in 16 bits: Megatron Core's is no Transformer Engine layer, and
// torchtitan's fp8 filters it out.
Sizes of_head(const Scenario& scenario) {
  Sizes s{scenario};
  s.quantises = false;
  return s;
}

}  // namespace

Ops head_forward(const Scenario& scenario) {
  const Sizes s = of_head(scenario);
  Ops ops = norm_forward(s);
  append(ops, gather(s, "tp_gather", 0.0));
  ops.push_back(product(s, "head", GemmPass::forward, s.tokens, s.vocab, s.hidden));
  ops.push_back(memory("cross_entropy", s.software.logit_forward_bytes * s.of_tokens(s.vocab)));
  // Maximum, predicted logit and sum of exponentials: an fp32 number a token each.
  if (s.plan.tp > 1)
    for (std::string_view name : {"logit_max", "logit_predicted", "logit_sum"})
      ops.push_back(
          collective(name, CollectiveKind::all_reduce, 4.0 * static_cast<double>(s.tokens)));
  return ops;
}

Ops head_backward(const Scenario& scenario) {
  const Sizes s = of_head(scenario);
  Ops ops;
  if (s.software.loss_wait > Seconds{})
    ops.push_back(wait_for_host(
        "loss_wait", s.host_slowdown * static_cast<double>(s.tokens) * s.software.loss_wait));
  if (s.software.recomputes_logits)
    ops.push_back(product(s, "head", GemmPass::forward, s.tokens, s.vocab, s.hidden));
  ops.push_back(
      memory("cross_entropy_bwd", s.software.logit_backward_bytes * s.of_tokens(s.vocab)));
  append(ops, column_parallel_backward(s, {{"head", "head_dgrad", "head_wgrad", s.vocab}}));
  append(ops, norm_backward(s));
  return ops;
}

namespace {

Ops full_recompute(const Scenario& scenario, LayerKind kind) {
  Ops ops = layer_forward(scenario, kind);
  if (scenario.software.early_recompute_stop) {
    // Recomputation stops at the last activation, or in a layer of a mixer alone before its last
    // product: what lies before it is that product's saved input.
    auto last = std::find_if(ops.rbegin(), ops.rend(),
                             [](const Op& op) { return op.name == "activation"; });
    if (last == ops.rend())
      last = std::next(std::find_if(ops.rbegin(), ops.rend(),
                                    [](const Op& op) { return op.kind == Op::Kind::gemm; }));
    ops.erase(last.base(), ops.end());
  }
  return ops;
}

// Recomputed operations before the second block, for layers of all kinds.
Ops attention_parts(const Scenario& scenario, LayerKind kind) {
  const LayerSizes s{scenario, kind};
  const RecomputeChoice& choice = s.plan.recompute;
  Ops ops;
  const bool mixes = has_mixer(s.model);
  const bool second_norm =
      has_feed_forward(s.model) && (!s.model.parallel_residual || s.model.norms_per_layer > 1);
  if (choice.selects(RecomputeModule::layernorm) && mixes) append(ops, norm_forward(s));
  if (choice.selects(RecomputeModule::mla_up_proj) && s.model.latent)
    append(ops, latent_up_forward(s));
  if (choice.selects(RecomputeModule::core_attn) && s.model.heads > 0)
    append(ops, core_attention_forward(scenario, kind));
  if (choice.selects(RecomputeModule::layernorm) && second_norm) append(ops, norm_forward(s));
  return ops;
}

}  // namespace

Ops recompute_without_exchange(const Scenario& scenario, LayerKind kind,
                               std::span<const std::int64_t> rows) {
  const LayerSizes s{scenario, kind};
  const RecomputeChoice& choice = s.plan.recompute;
  Ops ops = attention_parts(scenario, kind);
  if (choice.selects(RecomputeModule::moe_act)) append(ops, routed_activation(s, rows));
  if (choice.selects(RecomputeModule::shared_experts)) append(ops, shared_experts_forward(s));
  return ops;
}

Ops layer_recompute(const Scenario& scenario, LayerKind kind) {
  const LayerSizes s{scenario, kind};
  const RecomputeChoice& choice = s.plan.recompute;
  if (kind.kept) return {};
  if (choice.kind == Recompute::full) return full_recompute(scenario, kind);
  if (choice == Recompute::selective &&
      s.software.selective_recompute == SelectiveRecompute::alternate_products)
    return alternate_products(s);
  if (kind.has_experts) {
    Ops ops = recompute_without_exchange(scenario, kind, even_rows(s));
    if (choice.selects(RecomputeModule::moe)) append(ops, experts_forward(s));
    return ops;
  }
  Ops ops = attention_parts(scenario, kind);
  if (choice.selects(RecomputeModule::mlp) && has_feed_forward(s.model)) {
    Ops mlp = mlp_forward(s);
    // The reduction in a parallel block sums both branches, and no operation reads the sum again.
    if (s.model.parallel_residual)
      std::erase_if(mlp, [](const Op& op) { return op.name == "tp_reduce"; });
    append(ops, mlp);
  }
  return ops;
}

}  // namespace orrery
