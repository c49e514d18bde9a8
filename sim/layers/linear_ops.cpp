#include <algorithm>
#include <iterator>
#include <numeric>

#include "sim/layers/adapters.hpp"
#include "sim/layers/layer_parts.hpp"

namespace orrery {

using Sizes = LayerSizes;

std::int64_t sum_of(const std::vector<std::int64_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), std::int64_t{0});
}

void append(Ops& ops, const Ops& more) { ops.insert(ops.end(), more.begin(), more.end()); }
void append(Ops& ops, Ops&& more) {
  ops.insert(ops.end(), std::move_iterator{more.begin()}, std::move_iterator{more.end()});
}

// A collective precedes the GEMM that it is pipelined into.
Ops gather(const Sizes& s, std::string_view name, double hidden, std::int64_t width) {
  if (s.plan.tp == 1 || !s.plan.sp) return {};
  const double elements = width > 0 ? s.of_tokens(width) : s.tensor;
  return {collective(name, CollectiveKind::all_gather, s.element * elements, hidden)};
}

Ops reduce(const Sizes& s, std::string_view name, double hidden, std::int64_t width) {
  if (s.plan.tp == 1) return {};
  const double elements = width > 0 ? s.of_tokens(width) : s.tensor;
  return {collective(name, s.plan.sp ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
                     s.element * elements, hidden)};
}

double pipelined(const Sizes& s) { return s.plan.sp ? s.plan.tp_hidden : 0.0; }

namespace {

// Input gradients are pipelined like the forward pass, or sent during the weight gradient.
double gradient_overlap(const Sizes& s) {
  if (!s.plan.trains_weights()) return 0.0;
  return pipelined(s) > 0.0 ? pipelined(s) : s.plan.overlap_tp_gradients ? 1.0 : 0.0;
}

}  // namespace

// An activation in both directions, for forward product and weight gradient, or, with a scale for
// each row, in the first alone. Weights are not counted, as their 8-bit forms are made once a step,
// for all micro-batches. Blocks with scales lie along one direction (Transformer Engine,
// common/recipe, MXFP8BlockScaling), so that both directions are written.
Ops quantise(const Sizes& s, double elements) {
  if (!s.quantises) return {};
  const int reads = facts(s.plan.dtype).quantise_reads;
  double bytes =
      reads > 0 ? reads * s.element + 2.0 * element_bytes(s.plan.dtype) : s.software.quantise_bytes;
  // A frozen weight has no gradient, for which the second direction would be.
  if (!s.plan.trains_weights() && !s.software.fp8_scaling.by_rows)
    bytes -= element_bytes(s.plan.dtype);
  return {memory("quantise", bytes * elements)};
}

namespace {

bool scales_rows(const Sizes& s) {
  return s.quantises && !has_scale_blocks(s.plan.dtype) && s.software.fp8_scaling.by_rows;
}

// Quantises along the direction that a weight gradient sums over.
Ops quantise_columns(const Sizes& s, double elements) {
  if (!scales_rows(s) || !s.plan.trains_weights()) return {};
  Op op = memory("quantise_columns", s.software.fp8_scaling.columns_bytes * elements);
  op.pass = GemmPass::wgrad;
  return {op};
}

Ops quantise_weight(const Sizes& s, double bytes, std::int64_t width) {
  if (!s.quantises || has_scale_blocks(s.plan.dtype) || bytes == 0.0) return {};
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
  if (s.quantises) op.efficiency = s.software.narrow_gemm_efficiency(s.plan.dtype);
  return op;
}

namespace {

// The gather of a linear layer's input: as narrow as its products read it, but in 16 bits if rows
// have their own scales, and then complete before any product begins.
Ops gather_quantised(const Sizes& s, std::string_view name, double hidden) {
  if (scales_rows(s)) return gather(s, name, 0.0);
  Ops sent = gather(s, name, hidden);
  // Scales of MXFP8 are some 3 % more, which are not counted.
  const double sent_bytes = element_bytes(measured_as(s.plan.dtype));
  if (s.quantises)
    for (Op& op : sent) op.bytes = op.bytes * (sent_bytes / s.element);
  return sent;
}

// The same with its quantisation: before the gather (Transformer Engine, pytorch/distributed.py,
// gather_along_first_dim), or after it with a scale for each row.
Ops gather_operand(const Sizes& s, std::string_view name, double hidden,
                   Ops (*form)(const Sizes&, double)) {
  const Ops sent = gather_quantised(s, name, hidden);
  Ops ops = scales_rows(s) ? sent : form(s, s.own_tensor);
  append(ops, scales_rows(s) ? form(s, s.tensor) : sent);
  return ops;
}

}  // namespace

Ops row_parallel_forward(const Sizes& s, const Linears& summed) {
  const double hidden = pipelined(s);
  Ops ops;
  for (const Linear& one : summed) {
    append(ops, quantise(s, s.of_tokens(one.width)));
    append(ops, quantise_weight_forward(s, one.width));
  }
  for (const Linear& one : summed) {
    const bool last = &one == &summed.back();
    if (last && summed.size() > 1) ops.push_back(memory("branch_sum", 3.0 * s.element * s.tensor));
    append(ops, dequantise(s, static_cast<double>(s.hidden * one.width)));
    if (last && hidden > 0.0) append(ops, reduce(s, "tp_reduce", hidden));
    ops.push_back(product(s, one.name, GemmPass::forward, s.tokens, s.hidden, one.width));
    append(ops,
           adapter_forward(s, one.name, static_cast<double>(s.tokens), one.width, s.hidden, true));
  }
  if (hidden == 0.0) append(ops, reduce(s, "tp_reduce", 0.0));
  return ops;
}

Ops column_parallel_forward(const Sizes& s, const Linears& of_one_input) {
  Ops ops;
  for (const Linear& one : of_one_input) append(ops, quantise_weight_forward(s, one.width));
  append(ops, gather_operand(s, "tp_gather", pipelined(s), quantise));
  for (const Linear& one : of_one_input) {
    append(ops, dequantise(s, static_cast<double>(s.hidden * one.width)));
    ops.push_back(product(s, one.name, GemmPass::forward, s.tokens, one.width, s.hidden));
    append(ops,
           adapter_forward(s, one.name, static_cast<double>(s.tokens), s.hidden, one.width, false));
  }
  return ops;
}

Op accumulate(const Sizes& s, std::int64_t n, std::int64_t k) {
  Op op = memory("accumulate", s.software.accumulate_bytes * static_cast<double>(n * k));
  op.pass = GemmPass::wgrad;
  return op;
}

void append_weight_gradient(const Sizes& s, Ops& ops, Op product, std::int64_t n, std::int64_t k) {
  const bool of_table = product.name == "head_wgrad";
  if (!(of_table ? s.plan.trains_tables() : s.plan.trains_weights())) return;
  ops.push_back(std::move(product));
  ops.push_back(accumulate(s, n, k));
}

Ops row_parallel_backward(const Sizes& s, const Linears& summed) {
  Ops ops;
  for (const Linear& one : summed) append(ops, quantise_weight_backward(s, one.width));
  append(ops, gather_operand(s, "tp_gather_grad", pipelined(s), quantise_gradient));
  for (const Linear& one : summed) {
    append(ops, dequantise(s, static_cast<double>(s.hidden * one.width)));
    ops.push_back(product(s, one.dgrad, GemmPass::dgrad, s.tokens, one.width, s.hidden));
    append(ops,
           adapter_backward(s, one.name, static_cast<double>(s.tokens), one.width, s.hidden, true));
    append(ops, quantise_columns(s, s.of_tokens(one.width)));
    append_weight_gradient(s, ops,
                           product(s, one.wgrad, GemmPass::wgrad, s.hidden, one.width, s.tokens),
                           s.hidden, one.width);
  }
  return ops;
}

namespace {

// Products that share an input each add to its gradient. A compiler joins the sum with the norm's
// backward pass that reads it, which then reads more tensors, but not with a collective.
Ops sum_of_gradients(const Sizes& s, std::size_t products) {
  if (products == 1) return {};
  const auto count = static_cast<double>(products);
  return {memory("grad_sum", s.element * (s.plan.tp > 1 ? count + 1.0 : count - 1.0) * s.tensor)};
}

}  // namespace

// Sequence parallelism kept only this rank's share of the input, which is gathered again.
Ops column_parallel_backward(const Sizes& s, const Linears& of_one_input) {
  const double hidden = gradient_overlap(s);
  Ops ops;
  for (const Linear& one : of_one_input) append(ops, quantise_gradient(s, s.of_tokens(one.width)));
  for (const Linear& one : of_one_input) append(ops, quantise_weight_backward(s, one.width));
  const bool reads_input =
      s.plan.trains_weights() ||
      std::any_of(of_one_input.begin(), of_one_input.end(), [&](const Linear& one) {
        return has_adapter(s, one.name) || (one.name == "head" && s.plan.train_tables);
      });
  if (reads_input &&
      (s.software.gathers_inputs_again || s.plan.recompute.selects(RecomputeModule::layernorm)))
    append(ops, gather_quantised(s, "tp_gather_input", hidden));
  for (const Linear& one : of_one_input) {
    append(ops, dequantise(s, static_cast<double>(s.hidden * one.width)));
    ops.push_back(product(s, one.dgrad, GemmPass::dgrad, s.tokens, s.hidden, one.width));
    append(ops, adapter_backward(s, one.name, static_cast<double>(s.tokens), s.hidden, one.width,
                                 false));
  }
  append(ops, sum_of_gradients(s, of_one_input.size()));
  append(ops, quantise_columns(s, s.tensor));
  append(ops, reduce(s, "tp_reduce_grad", hidden));
  for (const Linear& one : of_one_input) {
    append_weight_gradient(s, ops,
                           product(s, one.wgrad, GemmPass::wgrad, one.width, s.hidden, s.tokens),
                           one.width, s.hidden);
  }
  return ops;
}

}  // namespace orrery
