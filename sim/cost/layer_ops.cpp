#include "sim/cost/layer_ops.hpp"

#include "sim/cost/attention_ops.hpp"
#include "sim/cost/expert_ops.hpp"
#include "sim/cost/latent_attention_ops.hpp"
#include "sim/cost/layer_parts.hpp"

namespace orrery {

using Sizes = LayerSizes;

void append(Ops& ops, const Ops& more) { ops.insert(ops.end(), more.begin(), more.end()); }

// What is pipelined into its GEMM stands before that GEMM in the list.
Ops gather(const Sizes& s, std::string_view name, double hidden, std::int64_t width) {
  if (s.plan.tp == 1 || !s.plan.sp) return {};
  const double elements = width > 0 ? s.of_tokens(width) : s.tensor;
  return {collective(name, CollectiveKind::all_gather, activation_bytes * elements, hidden)};
}

Ops reduce(const Sizes& s, std::string_view name, double hidden, std::int64_t width) {
  if (s.plan.tp == 1) return {};
  const double elements = width > 0 ? s.of_tokens(width) : s.tensor;
  return {collective(name, s.plan.sp ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                     activation_bytes * elements, hidden)};
}

double pipelined(const Sizes& s) { return s.plan.sp ? s.plan.tp_hidden : 0.0; }

namespace {

// Input gradients: pipelined like the forward pass, or sent whole beside the weight gradient.
double gradient_overlap(const Sizes& s) {
  return pipelined(s) > 0.0 ? pipelined(s) : s.plan.overlap_tp_gradients ? 1.0 : 0.0;
}

}  // namespace

// An activation in both directions, as forward product and weight gradient need it, or, with a
// scale for each row, in the first alone. Weights are not counted where their 8-bit forms are made
// once a step, for all micro-batches. MXFP8 has a scale byte for 32 elements of each direction
// (Transformer Engine, common/recipe, MXFP8BlockScaling).
Ops quantise(const Sizes& s, double elements) {
  if (!s.quantises) return {};
  const double bytes =
      s.plan.dtype == Dtype::mxfp8 ? 2.0 + 2.0 * (1.0 + 1.0 / 32.0) : s.software.quantise_bytes;
  return {memory("quantise", bytes * elements)};
}

namespace {

bool scales_rows(const Sizes& s) {
  return s.quantises && s.plan.dtype == Dtype::fp8 && s.software.fp8_scaling.by_rows;
}

// The direction that a weight gradient sums over.
Ops quantise_columns(const Sizes& s, double elements) {
  if (!scales_rows(s)) return {};
  Op op = memory("quantise_columns", s.software.fp8_scaling.columns_bytes * elements);
  op.pass = GemmPass::wgrad;
  return {op};
}

Ops quantise_weight(const Sizes& s, double bytes, std::int64_t width) {
  if (!s.quantises || s.plan.dtype != Dtype::fp8 || bytes == 0.0) return {};
  return {memory("quantise_weight", bytes * static_cast<double>(width * s.hidden))};
}
Ops quantise_weight_forward(const Sizes& s, std::int64_t width) {
  return quantise_weight(s, s.software.fp8_scaling.forward_weight_bytes, width);
}
Ops quantise_weight_backward(const Sizes& s, std::int64_t width) {
  return quantise_weight(s, s.software.fp8_scaling.backward_weight_bytes, width);
}

}  // namespace

Ops quantise_gradient(const Sizes& s, double elements) {
  Ops ops = quantise(s, elements);
  append(ops, quantise_columns(s, elements));
  return ops;
}

Op product(const Sizes& s, std::string_view name, GemmPass pass, std::int64_t m, std::int64_t n,
           std::int64_t k) {
  Op op = gemm(name, pass, m, n, k);
  op.sixteen_bit = !s.quantises;
  if (s.quantises && s.plan.dtype == Dtype::fp8)
    op.efficiency = s.software.fp8_scaling.gemm_efficiency;
  return op;
}

namespace {

// What tensor parallelism gathers for a linear layer, in the form in which its products read it. It
// is quantised before it is sent (Transformer Engine, pytorch/distributed.py,
// gather_along_first_dim); with a scale for each row, where it arrives, so that no product can
// begin with a part of it.
Ops gather_operand(const Sizes& s, std::string_view name, double hidden,
                   Ops (*form)(const Sizes&, double)) {
  if (scales_rows(s)) {
    Ops ops = gather(s, name, 0.0);
    append(ops, form(s, s.tensor));
    return ops;
  }
  Ops ops = form(s, s.own_tensor);
  Ops sent = gather(s, name, hidden);
  if (s.quantises)
    for (Op& op : sent) op.bytes = op.bytes / activation_bytes;
  append(ops, sent);
  return ops;
}

}  // namespace

Ops norm_forward(const Sizes& s) { return {memory("norm", 4.0 * s.own_tensor)}; }
// Input gradient, and one more pass for the gradients of scale and bias.
Ops norm_backward(const Sizes& s) { return {memory("norm_bwd", 8.0 * s.own_tensor)}; }

namespace {

// x + dropout(y + bias): reads x and y, writes the sum and a one-byte mask. Without dropout: reads
// two tensors, writes one.
Ops residual_forward(const Sizes& s) {
  return {memory("residual", (s.software.dropout ? 7.0 : 6.0) * s.own_tensor)};
}
// Dropout's gradient (2 read, 1 mask, 2 write), bias gradient (2), sum with the residual's (6).
Ops residual_backward(const Sizes& s) {
  return {memory("residual_bwd", (s.software.dropout ? 13.0 : 6.0) * s.own_tensor)};
}

}  // namespace

Ops row_parallel_forward(const Sizes& s, std::string_view name, std::int64_t width) {
  const Op row = product(s, name, GemmPass::forward, s.tokens, s.hidden, width);
  const double hidden = pipelined(s);
  Ops ops = quantise(s, s.of_tokens(width));
  append(ops, quantise_weight_forward(s, width));
  if (hidden > 0.0) append(ops, reduce(s, "tp_reduce", hidden));
  ops.push_back(row);
  if (hidden == 0.0) append(ops, reduce(s, "tp_reduce", 0.0));
  return ops;
}

Ops column_parallel_forward(const Sizes& s, std::string_view name,
                            const std::vector<std::int64_t>& widths) {
  Ops ops;
  for (std::int64_t width : widths) append(ops, quantise_weight_forward(s, width));
  append(ops, gather_operand(s, "tp_gather", pipelined(s), quantise));
  for (std::int64_t width : widths)
    ops.push_back(product(s, name, GemmPass::forward, s.tokens, width, s.hidden));
  return ops;
}

Op accumulate(const Sizes& s, std::int64_t n, std::int64_t k) {
  Op op = memory("accumulate", s.software.accumulate_bytes * static_cast<double>(n * k));
  op.pass = GemmPass::wgrad;
  return op;
}

Ops row_parallel_backward(const Sizes& s, std::int64_t width, std::string_view dgrad,
                          std::string_view wgrad) {
  Ops ops = quantise_weight_backward(s, width);
  append(ops, gather_operand(s, "tp_gather_grad", pipelined(s), quantise_gradient));
  ops.push_back(product(s, dgrad, GemmPass::dgrad, s.tokens, width, s.hidden));
  append(ops, quantise_columns(s, s.of_tokens(width)));
  ops.push_back(product(s, wgrad, GemmPass::wgrad, s.hidden, width, s.tokens));
  ops.push_back(accumulate(s, s.hidden, width));
  return ops;
}

namespace {

// The gradients that products side by side bring to their one input. A compiler joins the sum with
// the norm's backward pass that reads it, which then reads more tensors, but not with a collective.
Ops sum_of_gradients(const Sizes& s, std::size_t products) {
  if (products == 1) return {};
  const auto count = static_cast<double>(products);
  return {memory("grad_sum",
                 activation_bytes * (s.plan.tp > 1 ? count + 1.0 : count - 1.0) * s.tensor)};
}

}  // namespace

// With sequence parallelism the input was kept as this rank's share, and is gathered again.
Ops column_parallel_backward(const Sizes& s, const std::vector<std::int64_t>& widths,
                             std::string_view dgrad, std::string_view wgrad) {
  const double hidden = gradient_overlap(s);
  Ops ops;
  for (std::int64_t width : widths) append(ops, quantise_gradient(s, s.of_tokens(width)));
  for (std::int64_t width : widths) append(ops, quantise_weight_backward(s, width));
  if (s.software.gathers_inputs_again || s.plan.recompute.selects(RecomputeModule::layernorm)) {
    Ops again = gather(s, "tp_gather_input", scales_rows(s) ? 0.0 : hidden);
    if (s.quantises && !scales_rows(s))
      for (Op& op : again) op.bytes = op.bytes / activation_bytes;
    append(ops, again);
  }
  for (std::int64_t width : widths)
    ops.push_back(product(s, dgrad, GemmPass::dgrad, s.tokens, s.hidden, width));
  append(ops, sum_of_gradients(s, widths.size()));
  append(ops, quantise_columns(s, s.tensor));
  append(ops, reduce(s, "tp_reduce_grad", hidden));
  for (std::int64_t width : widths) {
    ops.push_back(product(s, wgrad, GemmPass::wgrad, width, s.hidden, s.tokens));
    ops.push_back(accumulate(s, width, s.hidden));
  }
  return ops;
}

namespace {

double rotary_bytes(const Sizes& s) {
  return 4.0 * s.of_tokens((s.heads + s.kv_heads) * s.model.head_dim);
}

Ops activation_forward(const Sizes& s) {
  return {memory("activation", activation_bytes * s.of_tokens(s.ffn_in + s.ffn))};
}
Ops activation_backward(const Sizes& s) {
  Ops ops{memory("activation_bwd", activation_bytes * s.of_tokens(2 * s.ffn_in + s.ffn))};
  if (!s.software.fused_bias_gradients && s.model.mlp_bias)
    ops.push_back(memory("bias_grad", activation_bytes * s.of_tokens(s.ffn)));
  return ops;
}

}  // namespace

namespace {

Ops attention_forward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario};
  if (s.model.latent) return latent_attention_forward(s, core_attention_forward(scenario, kind));
  Ops ops = column_parallel_forward(s, "qkv", s.qkv_products());
  if (s.model.qk_norm) ops.push_back(memory("qk_norm", rotary_bytes(s)));
  if (s.model.rotary) ops.push_back(memory("rope", rotary_bytes(s)));
  if (!s.plan.fused_attention) ops.push_back(memory("transpose", 4.0 * s.of_tokens(s.head_width)));
  append(ops, core_attention_forward(scenario, kind));
  append(ops, row_parallel_forward(s, "proj", s.head_width));
  return ops;
}

Ops attention_backward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario};
  if (s.model.latent) return latent_attention_backward(s, core_attention_backward(scenario, kind));
  Ops ops = row_parallel_backward(s, s.head_width, "proj_dgrad", "proj_wgrad");
  append(ops, core_attention_backward(scenario, kind));
  if (!s.plan.fused_attention)
    ops.push_back(memory("transpose_bwd", 12.0 * s.of_tokens(s.head_width)));
  if (s.model.rotary) ops.push_back(memory("rope_bwd", rotary_bytes(s)));
  if (s.model.qk_norm) ops.push_back(memory("qk_norm_bwd", 2.0 * rotary_bytes(s)));
  if (!s.software.fused_bias_gradients && s.model.qkv_bias)
    ops.push_back(memory("bias_grad", activation_bytes * s.of_tokens(s.qkv)));
  append(ops, column_parallel_backward(s, s.qkv_products(), "qkv_dgrad", "qkv_wgrad"));
  return ops;
}

}  // namespace

Ops mlp_forward(const Sizes& s) {
  Ops ops = column_parallel_forward(s, "fc1", s.fc1_products());
  append(ops, activation_forward(s));
  append(ops, row_parallel_forward(s, "fc2", s.ffn));
  return ops;
}

namespace {

Ops mlp_backward(const Sizes& s) {
  Ops ops = row_parallel_backward(s, s.ffn, "fc2_dgrad", "fc2_wgrad");
  append(ops, activation_backward(s));
  append(ops, column_parallel_backward(s, s.fc1_products(), "fc1_dgrad", "fc1_wgrad"));
  return ops;
}

}  // namespace

Ops layer_forward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario};
  Ops ops = norm_forward(s);
  append(ops, attention_forward(scenario, kind));
  append(ops, residual_forward(s));
  append(ops, norm_forward(s));
  append(ops, kind.has_experts ? experts_forward(s) : mlp_forward(s));
  append(ops, residual_forward(s));
  return ops;
}

Ops layer_backward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario};
  Ops ops = residual_backward(s);
  append(ops, kind.has_experts ? experts_backward(s) : mlp_backward(s));
  append(ops, norm_backward(s));
  append(ops, residual_backward(s));
  append(ops, attention_backward(scenario, kind));
  append(ops, norm_backward(s));
  return ops;
}

Ops alternate_products(const Sizes& s) {
  const std::int64_t keys = s.kv_heads * s.model.head_dim;
  Ops ops = norm_forward(s);
  append(ops, column_parallel_forward(s, "keys", {keys}));
  if (s.model.qk_norm) ops.push_back(memory("qk_norm", rotary_bytes(s)));
  if (s.model.rotary) ops.push_back(memory("rope", rotary_bytes(s)));
  append(ops, row_parallel_forward(s, "proj", s.head_width));
  append(ops, residual_forward(s));
  append(ops, norm_forward(s));
  if (s.model.gated)
    append(ops, column_parallel_forward(s, "fc1_second", {s.ffn}));
  else
    append(ops, gather(s, "tp_gather", pipelined(s)));
  append(ops, activation_forward(s));
  return ops;
}

LayerEnds layer_ends_forward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario};
  SharedOps shared = shared_beside_forward(s);
  LayerEnds ends{norm_forward(s), std::move(shared.beside_dispatch),
                 std::move(shared.beside_combine), after_experts_forward(s)};
  append(ends.before, attention_forward(scenario, kind));
  append(ends.before, residual_forward(s));
  append(ends.before, norm_forward(s));
  append(ends.before, before_experts_forward(s));
  append(ends.before, shared.before);
  append(ends.after, shared.after);
  append(ends.after, residual_forward(s));
  return ends;
}

LayerEnds layer_ends_backward(const Scenario& scenario, LayerKind kind) {
  const Sizes s{scenario};
  SharedOps shared = shared_beside_backward(s);
  LayerEnds ends{residual_backward(s), std::move(shared.beside_dispatch),
                 std::move(shared.beside_combine), after_experts_backward(s)};
  append(ends.before, before_experts_backward(s));
  append(ends.before, shared.before);
  append(ends.after, shared.after);
  append(ends.after, norm_backward(s));
  append(ends.after, residual_backward(s));
  append(ends.after, attention_backward(scenario, kind));
  append(ends.after, norm_backward(s));
  return ends;
}

Ops embedding_forward(const Scenario& scenario) {
  const Sizes s{scenario};
  // Row look-up (2 read, 2 write), position added (4 read, 2 write) where there are positions.
  Ops ops{memory("embedding", (s.model.learned_positions > 0 ? 10.0 : 4.0) * s.tensor)};
  append(ops, reduce(s, "tp_reduce", 0.0));
  if (s.software.dropout) ops.push_back(memory("dropout", 5.0 * s.own_tensor));
  return ops;
}

Ops embedding_backward(const Scenario& scenario) {
  const Sizes s{scenario};
  Ops ops = gather(s, "tp_gather_grad", 0.0);
  // Each token's gradient (2 read) is added to an fp32 row of its table (4 read, 4 write).
  const double tables = s.model.learned_positions > 0 ? 2.0 : 1.0;
  ops.push_back(memory("embedding_bwd", tables * 10.0 * s.tensor));
  return ops;
}

Ops prediction_forward(const Scenario& scenario) {
  const Sizes s{scenario};
  Ops ops = embedding_forward(scenario);
  append(ops, norm_forward(s));
  append(ops, norm_forward(s));
  ops.push_back(memory("join_inputs", 8.0 * s.own_tensor));
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
  ops.push_back(gemm("join_wgrad", GemmPass::wgrad, own, 2 * s.hidden, s.tokens));
  ops.push_back(accumulate(s, own, 2 * s.hidden));
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
  Ops ops{memory("cross_entropy_bwd", s.software.logit_backward_bytes * s.of_tokens(s.vocab))};
  append(ops, column_parallel_backward(s, {s.vocab}, "head_dgrad", "head_wgrad"));
  append(ops, norm_backward(s));
  return ops;
}

}  // namespace orrery
