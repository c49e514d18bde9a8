#include "sim/layers/expert_ops.hpp"

#include <numeric>

#include "sim/layers/adapters.hpp"
#include "sim/layers/op_work.hpp"
#include "sim/moe/routing_plan.hpp"

namespace orrery {
namespace {

struct ExpertSizes {
  explicit ExpertSizes(const LayerSizes& s)
      : experts{*s.model.experts},
        copies{s.own_tokens * experts.per_token},
        ffn{experts.ffn / s.plan.etp},
        ffn_in{(s.model.gated ? 2 : 1) * ffn},
        shared_ffn{experts.shared_ffn / s.plan.tp},
        row{experts.channels(s.hidden)},
        own{s.element * s.of_own_tokens(s.hidden)},
        own_rows{s.element * s.of_own_tokens(row)},
        of_copies{s.element * static_cast<double>(copies * row)} {}

  const Experts& experts;
  std::int64_t copies;  ///< Tokens that a rank sends, an expert each.
  std::int64_t ffn, ffn_in, shared_ffn;
  std::int64_t row;  ///< Channels that a routed expert reads and writes.
  double own;        ///< Bytes of the rank's own tokens.
  double own_rows;   ///< The same of the channels that routed experts read.
  double of_copies;  ///< Bytes of their copies.
};

// The rows that one rank's experts get.
struct Rows {
  Rows(const LayerSizes& s, std::span<const std::int64_t> rows)
      : element{s.element},
        each{rows},
        sum{static_cast<double>(std::accumulate(rows.begin(), rows.end(), std::int64_t{0}))} {}

  double bytes_of(std::int64_t width) const { return element * sum * static_cast<double>(width); }

  double element;  // Bytes.
  std::span<const std::int64_t> each;
  double sum;
};

// Rows of tensor ranks of one expert are gathered or, as sums, scattered.
Ops among_tensor_ranks(const LayerSizes& s, const ExpertSizes& e, const Rows& rows,
                       std::string_view name, CollectiveKind kind) {
  if (s.plan.etp == 1) return {};
  return {collective(name, kind, rows.bytes_of(e.row), 0.0, GroupKind::expert_tensor)};
}

// Rows are read or written one by one in the order of tokens' experts.
Op rearrange(const LayerSizes& s, std::string_view name, double bytes) {
  return memory(name, bytes, s.software.permute_efficiency);
}

// Rows arrive in the order of senders and are sorted by expert: read and written. Tokens that
// arrive once for all experts of a rank become a row for each of them.
Ops sort_rows(const LayerSizes& s, const ExpertSizes& e, const Rows& rows, std::string_view name) {
  if (s.plan.ep == 1) return {};
  if (copies_on_arrival(s.plan.moe_dispatcher))
    return {rearrange(s, name, (s.arriving + 1.0) * rows.bytes_of(e.row) / s.plan.etp)};
  if (rows.each.size() == 1) return {};
  return {rearrange(s, name, 2.0 * rows.bytes_of(e.row) / s.plan.etp)};
}

// The logits decide the routing and stay in 16 bits at least.
Op router_product(std::string_view name, GemmPass pass, std::int64_t m, std::int64_t n,
                  std::int64_t k) {
  Op op = gemm(name, pass, m, n, k);
  op.sixteen_bit = true;
  return op;
}

// Scores in fp32: softmax of the logits (read, 4 written), the k best (4 read), the routing map (1
// and 4 written) and its counts (1 read), for each token and expert.
Ops router_forward(const LayerSizes& s, const ExpertSizes& e) {
  const double choices = static_cast<double>(s.own_tokens * e.experts.count);
  return {router_product("router", GemmPass::forward, s.own_tokens, e.experts.count, s.hidden),
          memory("router_softmax", (s.element + 4.0) * choices),
          memory("router_top_k", 4.0 * choices), memory("router_map", 5.0 * choices),
          memory("router_counts", 1.0 * choices)};
}

Ops router_backward(const LayerSizes& s, const ExpertSizes& e) {
  const double choices = static_cast<double>(s.own_tokens * e.experts.count);
  Ops ops{memory("router_map_bwd", 5.0 * choices),
          memory("router_softmax_bwd", (8.0 + s.element) * choices),
          router_product("router_dgrad", GemmPass::dgrad, s.own_tokens, s.hidden, e.experts.count)};
  append_weight_gradient(
      s, ops,
      router_product("router_wgrad", GemmPass::wgrad, e.experts.count, s.hidden, s.own_tokens),
      e.experts.count, s.hidden);
  return ops;
}

Linear shared_fc1(std::int64_t width) {
  return {"shared_fc1", "shared_fc1_dgrad", "shared_fc1_wgrad", width};
}
Linear shared_fc2(std::int64_t width) {
  return {"shared_fc2", "shared_fc2_dgrad", "shared_fc2_wgrad", width};
}

Ops shared_forward(const LayerSizes& s, const ExpertSizes& e) {
  if (e.shared_ffn == 0) return {};
  const std::int64_t into = (s.model.gated ? 2 : 1) * e.shared_ffn;
  Ops ops = column_parallel_forward(s, {shared_fc1(into)});
  ops.push_back(activation_op(s, "shared_activation", s.of_tokens(e.shared_ffn), false));
  append(ops, row_parallel_forward(s, {shared_fc2(e.shared_ffn)}));
  ops.push_back(memory("shared_sum", 3.0 * e.own));
  return ops;
}

Ops shared_backward(const LayerSizes& s, const ExpertSizes& e) {
  if (e.shared_ffn == 0) return {};
  const std::int64_t into = (s.model.gated ? 2 : 1) * e.shared_ffn;
  Ops ops = row_parallel_backward(s, {shared_fc2(e.shared_ffn)});
  ops.push_back(activation_op(s, "shared_activation_bwd", s.of_tokens(e.shared_ffn), true));
  append(ops, column_parallel_backward(s, {shared_fc1(into)}));
  ops.push_back(memory("shared_grad_sum", 3.0 * e.own));
  return ops;
}

// Tokens are copied for their experts before dispatch, and the results are summed after combine.
Ops rearrange_copies(const LayerSizes& s, const ExpertSizes& e, std::string_view name) {
  if (s.plan.ep > 1 && copies_on_arrival(s.plan.moe_dispatcher)) return {};
  return {rearrange(s, name, e.own_rows + e.of_copies)};
}

Op grouped(const LayerSizes& s, const Rows& rows, std::string_view name, GemmPass pass,
           std::int64_t n, std::int64_t k) {
  Op op = grouped_gemm(name, pass, {rows.each.begin(), rows.each.end()}, n, k,
                       pass == GemmPass::wgrad ? s.software.accumulate_bytes : 0.0);
  op.sixteen_bit = !s.quantises;
  return op;
}

// The products of all experts with weights of n x k, and their gradients.
Ops experts_product(const LayerSizes& s, const Rows& rows, std::string_view name, std::int64_t n,
                    std::int64_t k) {
  Ops ops = dequantise(s, static_cast<double>(rows.each.size()) * static_cast<double>(n * k));
  ops.push_back(grouped(s, rows, name, GemmPass::forward, n, k));
  append(ops, adapter_forward(s, name, rows.sum, k, n, false));
  return ops;
}
Ops experts_gradients(const LayerSizes& s, const Rows& rows, const Linear& of, std::int64_t k) {
  Ops ops =
      dequantise(s, static_cast<double>(rows.each.size()) * static_cast<double>(of.width * k));
  ops.push_back(grouped(s, rows, of.dgrad, GemmPass::dgrad, of.width, k));
  append(ops, adapter_backward(s, of.name, rows.sum, k, of.width, false));
  if (s.plan.trains_weights())
    ops.push_back(grouped(s, rows, of.wgrad, GemmPass::wgrad, of.width, k));
  return ops;
}

// Capacity for one rank's experts and their surroundings in one direction, as a step with uneven
// routing builds hundreds of thousands of such lists.
constexpr std::size_t most_of_experts = 16;

Ops quantise_rows(const LayerSizes& s, const Rows& rows, std::int64_t width) {
  return quantise(s, rows.sum * static_cast<double>(width));
}

// Products in 8 bits need a multiple of 16 or 32 rows for each expert: all rows are copied to a
// padded buffer, and back (Megatron Core, moe/experts.py, quantization_padding). Hybrid-EP pads
// while it sorts, and kernels for all experts need no padding.
Ops pad_rows(const LayerSizes& s, const ExpertSizes& e, const Rows& rows, std::string_view name) {
  if (!s.quantises || s.software.fused_experts ||
      s.plan.moe_dispatcher == ExpertDispatcher::hybridep)
    return {};
  return {memory(name, 2.0 * rows.bytes_of(e.row))};
}

// The biases of the second products, each times its row's weight in fp32 (Megatron Core,
// moe/experts.py, _apply_bias): product (4 bytes written *), sum (a row's element and 4 read, 4
// written), of all experts (4, 4), as rows' elements (4, one). Backward into fp32 (one, 4), the
// gradient of the product's rows (4, one) and of all experts (one, one), of the bias (4, 4 *, 4
// summed) and of the weight (4, 4 *, 4 summed). The operands marked * are broadcast.
Ops apply_bias(const LayerSizes& s, const ExpertSizes& e, const Rows& rows, bool backward) {
  if (!s.model.mlp_bias || s.software.fused_experts) return {};
  const double elements = rows.sum * static_cast<double>(e.row);
  const double bytes = backward ? 32.0 + 4.0 * s.element : 24.0 + 2.0 * s.element;
  Op op = memory(backward ? "expert_bias_bwd" : "expert_bias", bytes * elements);
  op.indexed = backward ? IndexedWork{2.0 * elements, Bytes{16.0 * elements}}
                        : IndexedWork{elements, Bytes{4.0 * elements}};
  return {op};
}

// Both sides of the gate are limited kernel by kernel before the fused activation (Megatron Core,
// fusions/fused_bias_geglu.py, weighted_bias_quick_geglu_impl): forward each side is clamped (read
// and written) and both are put together (the same). Backward a comparison (read, a byte written)
// and the choice of the gradient (a byte and one read, one written) of the side with one limit; two
// comparisons, their conjunction (1, 1, 1 byte) and the choice of that with two; both put together
// (read and written each). The sides are strided halves of one tensor, so that all kernels but the
// conjunction and those that put together work out addresses.
Ops clamp(const LayerSizes& s, const ExpertSizes& e, const Rows& rows, bool backward) {
  if (!s.model.clamped_activation || s.software.fused_experts) return {};
  const double elements = rows.sum * static_cast<double>(e.ffn);
  const double bytes = backward ? 11.0 * s.element + 8.0 : 8.0 * s.element;
  Op op = memory(backward ? "clamp_bwd" : "clamp", bytes * elements);
  op.indexed = backward ? IndexedWork{5.0 * elements, Bytes{(7.0 * s.element + 5.0) * elements}}
                        : IndexedWork{2.0 * elements, Bytes{4.0 * s.element * elements}};
  return {op};
}

// Tensors for the backward pass are copied out of buffers of fixed size and back: quantised inputs
// of both products, in the direction of their weight gradients, and the activation's input
// (Megatron Core, moe/paged_stash.py; Transformer Engine, ops/fused/forward_grouped_mlp.py).
Ops stash_rows(const LayerSizes& s, const ExpertSizes& e, const Rows& rows, std::string_view name) {
  if (!s.software.stashes_experts) return {};
  const double operand = s.quantises ? 1.0 + 1.0 / 32.0 : s.element;
  const double row =
      operand * static_cast<double>(e.row + e.ffn) + s.element * static_cast<double>(e.ffn_in);
  return {memory(name, 2.0 * rows.sum * row)};
}

// Joins the parts with the dispatch and combine between them.
Ops with_exchanges(const LayerSizes& s, const Ops& before, std::string_view dispatch,
                   const Ops& experts, std::string_view combine, const Ops& after) {
  Ops ops = before;
  const double bytes = ExpertSizes{s}.of_copies;
  const auto exchange = [&](std::string_view name) {
    if (s.plan.ep > 1)
      ops.push_back(collective(name, CollectiveKind::all_to_all, bytes, 0.0, GroupKind::expert));
  };
  exchange(dispatch);
  append(ops, experts);
  exchange(combine);
  append(ops, after);
  return ops;
}

}  // namespace

double LayerSizes::arriving_share(const Scenario& s, const Model& shape) {
  if (!shape.experts || s.plan.ep == 1 || !copies_on_arrival(s.plan.moe_dispatcher)) return 1.0;
  const Experts& experts = *shape.experts;
  return distinct_shares(experts, s.plan.ep, even_choice(s.plan.routing)) /
         static_cast<double>(experts.per_token);
}

std::vector<std::int64_t> even_rows(const LayerSizes& s) {
  const Experts& experts = *s.model.experts;
  return even_tokens(s.own_tokens * experts.per_token * s.plan.etp, experts.count / s.plan.ep);
}

Ops routed_activation(const LayerSizes& s, std::span<const std::int64_t> of_each) {
  const ExpertSizes e{s};
  const Rows rows{s, of_each};
  Ops ops = clamp(s, e, rows, false);
  ops.push_back(memory("activation", rows.bytes_of(e.ffn_in + e.ffn)));
  return ops;
}

namespace {

// A product between hidden channels and the latent ones of routed experts, which every rank does in
// full for its own tokens. Recipes leave it in 16 bits, as the router.
Ops latent_forward(const LayerSizes& s, const ExpertSizes& e, std::string_view name,
                   std::int64_t out, std::int64_t in) {
  if (e.experts.latent == 0) return {};
  return {router_product(name, GemmPass::forward, s.own_tokens, out, in)};
}
Ops latent_backward(const LayerSizes& s, const ExpertSizes& e, std::string_view dgrad,
                    std::string_view wgrad, std::int64_t out, std::int64_t in) {
  if (e.experts.latent == 0) return {};
  Ops ops{router_product(dgrad, GemmPass::dgrad, s.own_tokens, in, out)};
  append_weight_gradient(s, ops, router_product(wgrad, GemmPass::wgrad, out, in, s.own_tokens), out,
                         in);
  return ops;
}

}  // namespace

Ops shared_experts_forward(const LayerSizes& s) { return shared_forward(s, ExpertSizes{s}); }

Ops before_experts_forward(const LayerSizes& s) {
  const ExpertSizes e{s};
  Ops ops = router_forward(s, e);
  append(ops, latent_forward(s, e, "latent_down", e.row, s.hidden));
  append(ops, rearrange_copies(s, e, "permute"));
  return ops;
}

Ops of_experts_forward(const LayerSizes& s, std::span<const std::int64_t> of_each) {
  const ExpertSizes e{s};
  const Rows rows{s, of_each};
  Ops ops;
  ops.reserve(most_of_experts);
  append(ops, sort_rows(s, e, rows, "sort_rows"));
  append(ops, among_tensor_ranks(s, e, rows, "etp_gather", CollectiveKind::all_gather));
  append(ops, pad_rows(s, e, rows, "pad_rows"));
  append(ops, quantise_rows(s, rows, e.row));
  append(ops, experts_product(s, rows, "experts_fc1", e.ffn_in, e.row));
  if (!s.software.fused_experts) {
    append(ops, routed_activation(s, of_each));
    append(ops, quantise_rows(s, rows, e.ffn));
  }
  append(ops, experts_product(s, rows, "experts_fc2", e.row, e.ffn));
  append(ops, stash_rows(s, e, rows, "stash_rows"));
  append(ops, apply_bias(s, e, rows, false));
  append(ops, pad_rows(s, e, rows, "unpad_rows"));
  append(ops, among_tensor_ranks(s, e, rows, "etp_reduce", CollectiveKind::reduce_scatter));
  append(ops, sort_rows(s, e, rows, "unsort_rows"));
  return ops;
}

Ops after_experts_forward(const LayerSizes& s) {
  const ExpertSizes e{s};
  Ops ops = rearrange_copies(s, e, "unpermute");
  append(ops, latent_forward(s, e, "latent_up", s.hidden, e.row));
  if (!s.plan.shared_expert_overlap) append(ops, shared_forward(s, e));
  return ops;
}

Ops before_experts_backward(const LayerSizes& s) {
  const ExpertSizes e{s};
  Ops ops;
  if (!s.plan.shared_expert_overlap) ops = shared_backward(s, e);
  append(ops, latent_backward(s, e, "latent_up_dgrad", "latent_up_wgrad", s.hidden, e.row));
  append(ops, rearrange_copies(s, e, "unpermute_bwd"));
  return ops;
}

Ops of_experts_backward(const LayerSizes& s, std::span<const std::int64_t> of_each) {
  const ExpertSizes e{s};
  const Rows rows{s, of_each};
  Ops ops;
  ops.reserve(most_of_experts);
  append(ops, sort_rows(s, e, rows, "unsort_rows_bwd"));
  append(ops, among_tensor_ranks(s, e, rows, "etp_gather_grad", CollectiveKind::all_gather));
  append(ops, pad_rows(s, e, rows, "unpad_rows_bwd"));
  append(ops, apply_bias(s, e, rows, true));
  append(ops, stash_rows(s, e, rows, "unstash_rows"));
  append(ops, quantise_rows(s, rows, e.row));
  append(ops,
         experts_gradients(
             s, rows, {"experts_fc2", "experts_fc2_dgrad", "experts_fc2_wgrad", e.row}, e.ffn));
  if (!s.software.fused_experts) {
    ops.push_back(memory("activation_bwd", rows.bytes_of(2 * e.ffn_in + e.ffn)));
    append(ops, clamp(s, e, rows, true));
    append(ops, quantise_rows(s, rows, e.ffn_in));
  }
  append(ops,
         experts_gradients(
             s, rows, {"experts_fc1", "experts_fc1_dgrad", "experts_fc1_wgrad", e.ffn_in}, e.row));
  append(ops, pad_rows(s, e, rows, "pad_rows_bwd"));
  append(ops, among_tensor_ranks(s, e, rows, "etp_reduce_grad", CollectiveKind::reduce_scatter));
  append(ops, sort_rows(s, e, rows, "sort_rows_bwd"));
  return ops;
}

Ops after_experts_backward(const LayerSizes& s) {
  const ExpertSizes e{s};
  Ops ops = rearrange_copies(s, e, "permute_bwd");
  append(ops, latent_backward(s, e, "latent_down_dgrad", "latent_down_wgrad", e.row, s.hidden));
  append(ops, router_backward(s, e));
  return ops;
}

// Tensor ranks exchange separately here, and nothing is pipelined into the products.
SharedOps shared_overlap_forward(const LayerSizes& s) {
  const ExpertSizes e{s};
  if (!s.plan.shared_expert_overlap) return {};
  const std::int64_t into = (s.model.gated ? 2 : 1) * e.shared_ffn;
  SharedOps ops;
  ops.before = quantise(s, s.own_tensor);
  append(ops.before, gather(s, "tp_gather", 0.0));
  const auto forward = [&](std::string_view name, std::int64_t n, std::int64_t k, bool sums) {
    Ops product_ops = dequantise(s, static_cast<double>(n * k));
    product_ops.push_back(product(s, name, GemmPass::forward, s.tokens, n, k));
    append(product_ops, adapter_forward(s, name, static_cast<double>(s.tokens), k, n, sums));
    return product_ops;
  };
  ops.during_dispatch = forward("shared_fc1", into, s.hidden, false);
  ops.during_dispatch.push_back(
      activation_op(s, "shared_activation", s.of_tokens(e.shared_ffn), false));
  ops.during_combine = quantise(s, s.of_tokens(e.shared_ffn));
  append(ops.during_combine, forward("shared_fc2", s.hidden, e.shared_ffn, true));
  ops.after = reduce(s, "tp_reduce", 0.0);
  ops.after.push_back(memory("shared_sum", 3.0 * e.own));
  return ops;
}

SharedOps shared_overlap_backward(const LayerSizes& s) {
  const ExpertSizes e{s};
  if (!s.plan.shared_expert_overlap) return {};
  const std::int64_t into = (s.model.gated ? 2 : 1) * e.shared_ffn;
  const auto products = [&](const Linear& of, std::int64_t n, std::int64_t k, bool sums) {
    Ops gradients = dequantise(s, static_cast<double>(n * k));
    gradients.push_back(product(s, of.dgrad, GemmPass::dgrad, s.tokens, k, n));
    append(gradients, adapter_backward(s, of.name, static_cast<double>(s.tokens), k, n, sums));
    append_weight_gradient(s, gradients, product(s, of.wgrad, GemmPass::wgrad, n, k, s.tokens), n,
                           k);
    return gradients;
  };
  SharedOps ops;
  ops.before = quantise(s, s.own_tensor);
  append(ops.before, gather(s, "tp_gather_grad", 0.0));
  ops.during_dispatch = products(shared_fc2(e.shared_ffn), s.hidden, e.shared_ffn, true);
  ops.during_dispatch.push_back(
      activation_op(s, "shared_activation_bwd", s.of_tokens(e.shared_ffn), true));
  ops.during_combine = quantise(s, s.of_tokens(into));
  append(ops.during_combine, products(shared_fc1(into), into, s.hidden, false));
  ops.after = reduce(s, "tp_reduce_grad", 0.0);
  ops.after.push_back(memory("shared_grad_sum", 3.0 * e.own));
  return ops;
}

Ops experts_forward(const LayerSizes& s) {
  return with_exchanges(s, before_experts_forward(s), "dispatch",
                        of_experts_forward(s, even_rows(s)), "combine", after_experts_forward(s));
}

Ops experts_backward(const LayerSizes& s) {
  return with_exchanges(s, before_experts_backward(s), "combine_bwd",
                        of_experts_backward(s, even_rows(s)), "dispatch_bwd",
                        after_experts_backward(s));
}

}  // namespace orrery
