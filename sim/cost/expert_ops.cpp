#include "sim/cost/expert_ops.hpp"

namespace orrery {
namespace {

struct ExpertSizes {
  explicit ExpertSizes(const LayerSizes& s)
      : experts{*s.model.experts},
        local{experts.count / s.plan.ep},
        copies{s.own_tokens * experts.per_token},
        rows{copies * s.plan.etp},
        ffn{experts.ffn / s.plan.etp},
        ffn_in{(s.model.gated ? 2 : 1) * ffn},
        shared_ffn{experts.shared_ffn / s.plan.tp},
        own{activation_bytes * s.of_own_tokens(s.hidden)},
        of_copies{activation_bytes * static_cast<double>(copies * s.hidden)} {}

  double of_rows(std::int64_t width) const {
    return activation_bytes * static_cast<double>(rows * width);
  }

  const Experts& experts;
  std::int64_t local;   ///< Experts on this rank.
  std::int64_t copies;  ///< Tokens that it sends, an expert each.
  std::int64_t rows;    ///< Tokens that its experts process.
  std::int64_t ffn, ffn_in, shared_ffn;
  double own;        ///< Bytes of the rank's own tokens.
  double of_copies;  ///< Bytes of their copies.
};

Op exchange(const LayerSizes& s, const ExpertSizes& e, std::string_view name) {
  (void)s;
  return collective(name, CollectiveKind::all_to_all, e.of_copies, 0.0, GroupKind::expert);
}

// Rows of tensor ranks of one expert, brought together or, as sums, taken apart.
Ops among_tensor_ranks(const LayerSizes& s, const ExpertSizes& e, std::string_view name,
                       CollectiveKind kind) {
  if (s.plan.etp == 1) return {};
  return {collective(name, kind, e.of_rows(s.hidden), 0.0, GroupKind::expert_tensor)};
}

// What arrives is ordered by sender, and experts want it by expert: read and written.
Ops sort_rows(const LayerSizes& s, const ExpertSizes& e, std::string_view name) {
  if (s.plan.ep == 1 || e.local == 1) return {};
  return {memory(name, 2.0 * e.of_copies)};
}

Ops exchanged(const LayerSizes& s, const ExpertSizes& e, std::string_view name) {
  if (s.plan.ep == 1) return {};
  return {exchange(s, e, name)};
}

// Logits in fp32: softmax (2 read, 4 written), the k best (4 read), the map of who goes where (1
// and 4 written) and its counts (1 read), a token and expert.
Ops router_forward(const LayerSizes& s, const ExpertSizes& e) {
  const double choices = static_cast<double>(s.own_tokens * e.experts.count);
  return {gemm("router", GemmPass::forward, s.own_tokens, e.experts.count, s.hidden),
          memory("router_softmax", 6.0 * choices), memory("router_top_k", 4.0 * choices),
          memory("router_map", 5.0 * choices), memory("router_counts", 1.0 * choices)};
}

Ops router_backward(const LayerSizes& s, const ExpertSizes& e) {
  const double choices = static_cast<double>(s.own_tokens * e.experts.count);
  return {memory("router_map_bwd", 5.0 * choices), memory("router_softmax_bwd", 10.0 * choices),
          gemm("router_dgrad", GemmPass::dgrad, s.own_tokens, s.hidden, e.experts.count),
          gemm("router_wgrad", GemmPass::wgrad, e.experts.count, s.hidden, s.own_tokens),
          accumulate(s, e.experts.count, s.hidden)};
}

Ops shared_forward(const LayerSizes& s, const ExpertSizes& e) {
  if (e.shared_ffn == 0) return {};
  const std::int64_t into = (s.model.gated ? 2 : 1) * e.shared_ffn;
  Ops ops = column_parallel_forward(s, "shared_fc1", into);
  ops.push_back(memory("shared_activation", activation_bytes * s.of_tokens(into + e.shared_ffn)));
  append(ops, row_parallel_forward(s, "shared_fc2", e.shared_ffn));
  ops.push_back(memory("shared_sum", 3.0 * e.own));
  return ops;
}

Ops shared_backward(const LayerSizes& s, const ExpertSizes& e) {
  if (e.shared_ffn == 0) return {};
  const std::int64_t into = (s.model.gated ? 2 : 1) * e.shared_ffn;
  Ops ops = row_parallel_backward(s, e.shared_ffn, "shared_fc2_dgrad", "shared_fc2_wgrad");
  ops.push_back(
      memory("shared_activation_bwd", activation_bytes * s.of_tokens(2 * into + e.shared_ffn)));
  append(ops, column_parallel_backward(s, into, "shared_fc1_dgrad", "shared_fc1_wgrad"));
  ops.push_back(memory("shared_grad_sum", 3.0 * e.own));
  return ops;
}

Op grouped(const LayerSizes& s, const ExpertSizes& e, std::string_view name, GemmPass pass,
           std::int64_t n, std::int64_t k) {
  return grouped_gemm(name, pass, even_tokens(e.rows, e.local), n, k,
                      pass == GemmPass::wgrad ? s.software.accumulate_bytes : 0.0);
}

}  // namespace

Ops experts_forward(const LayerSizes& s) {
  const ExpertSizes e{s};
  Ops ops = router_forward(s, e);
  ops.push_back(memory("permute", e.own + e.of_copies));
  append(ops, exchanged(s, e, "dispatch"));
  append(ops, sort_rows(s, e, "sort_rows"));
  append(ops, among_tensor_ranks(s, e, "etp_gather", CollectiveKind::all_gather));
  ops.push_back(grouped(s, e, "experts_fc1", GemmPass::forward, e.ffn_in, s.hidden));
  ops.push_back(memory("activation", e.of_rows(e.ffn_in + e.ffn)));
  ops.push_back(grouped(s, e, "experts_fc2", GemmPass::forward, s.hidden, e.ffn));
  append(ops, among_tensor_ranks(s, e, "etp_reduce", CollectiveKind::reduce_scatter));
  append(ops, sort_rows(s, e, "unsort_rows"));
  append(ops, exchanged(s, e, "combine"));
  ops.push_back(memory("unpermute", e.of_copies + e.own));
  append(ops, shared_forward(s, e));
  return ops;
}

Ops experts_backward(const LayerSizes& s) {
  const ExpertSizes e{s};
  Ops ops = shared_backward(s, e);
  ops.push_back(memory("unpermute_bwd", e.own + e.of_copies));
  append(ops, exchanged(s, e, "combine_bwd"));
  append(ops, sort_rows(s, e, "unsort_rows_bwd"));
  append(ops, among_tensor_ranks(s, e, "etp_gather_grad", CollectiveKind::all_gather));
  ops.push_back(grouped(s, e, "experts_fc2_dgrad", GemmPass::dgrad, s.hidden, e.ffn));
  ops.push_back(grouped(s, e, "experts_fc2_wgrad", GemmPass::wgrad, s.hidden, e.ffn));
  ops.push_back(memory("activation_bwd", e.of_rows(2 * e.ffn_in + e.ffn)));
  ops.push_back(grouped(s, e, "experts_fc1_dgrad", GemmPass::dgrad, e.ffn_in, s.hidden));
  ops.push_back(grouped(s, e, "experts_fc1_wgrad", GemmPass::wgrad, e.ffn_in, s.hidden));
  append(ops, among_tensor_ranks(s, e, "etp_reduce_grad", CollectiveKind::reduce_scatter));
  append(ops, sort_rows(s, e, "sort_rows_bwd"));
  append(ops, exchanged(s, e, "dispatch_bwd"));
  ops.push_back(memory("permute_bwd", e.of_copies + e.own));
  append(ops, router_backward(s, e));
  return ops;
}

}  // namespace orrery
