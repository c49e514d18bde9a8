#include "sim/cost/latent_attention_ops.hpp"

namespace orrery {
namespace {

struct Widths {
  explicit Widths(const LayerSizes& s)
      : q{s.model.latent->q_rank},
        kv{s.model.latent->kv_rank},
        kv_down{kv + s.model.latent->rope_dim},
        queries{s.heads * s.model.head_dim},
        keys_and_values{s.heads * (s.model.latent->nope_dim + s.model.latent->v_dim)} {}

  std::int64_t q, kv, kv_down, queries, keys_and_values;
};

// Positions enter a part of each query in place; keys are put together from their own part and the
// one that all heads share, values are copied beside: read dn + dv, written dn + dr + dv a head
// and token. Backward moves the gradients the same way.
double rotary_bytes(const LayerSizes& s, const Widths& w) {
  const std::int64_t rotated = s.heads * s.model.latent->rope_dim;
  const std::int64_t values = s.heads * s.model.latent->v_dim;
  return activation_bytes * s.of_tokens(2 * rotated + w.keys_and_values + w.queries + values);
}

// A product that every tensor rank does whole for its own tokens.
Op own_product(const LayerSizes& s, std::string_view name, GemmPass pass, std::int64_t n,
               std::int64_t k) {
  switch (pass) {
    case GemmPass::forward:
      return gemm(name, pass, s.own_tokens, n, k);
    case GemmPass::dgrad:
      return gemm(name, pass, s.own_tokens, k, n);
    case GemmPass::wgrad:
      break;
  }
  return gemm(name, pass, n, k, s.own_tokens);
}

void add_product_backward(const LayerSizes& s, std::string_view dgrad, std::string_view wgrad,
                          std::int64_t n, std::int64_t k, Ops& ops) {
  ops.push_back(own_product(s, dgrad, GemmPass::dgrad, n, k));
  ops.push_back(own_product(s, wgrad, GemmPass::wgrad, n, k));
  ops.push_back(accumulate(s, n, k));
}

void add_up_backward(const LayerSizes& s, std::string_view dgrad, std::string_view wgrad,
                     std::int64_t n, std::int64_t k, Ops& ops) {
  ops.push_back(gemm(dgrad, GemmPass::dgrad, s.tokens, k, n));
  append(ops, reduce(s, "tp_reduce_grad", 0.0, k));
  ops.push_back(gemm(wgrad, GemmPass::wgrad, n, k, s.tokens));
  ops.push_back(accumulate(s, n, k));
}

}  // namespace

Ops latent_attention_forward(const LayerSizes& s, const Ops& core) {
  const Widths w{s};
  Ops ops;
  if (w.q > 0) {
    ops.push_back(own_product(s, "q_down", GemmPass::forward, w.q, s.hidden));
    ops.push_back(memory("q_norm", 4.0 * s.of_own_tokens(w.q)));
    append(ops, gather(s, "tp_gather", 0.0, w.q));
    ops.push_back(gemm("q_up", GemmPass::forward, s.tokens, w.queries, w.q));
  } else {
    append(ops, column_parallel_forward(s, "q", w.queries));
  }
  ops.push_back(own_product(s, "kv_down", GemmPass::forward, w.kv_down, s.hidden));
  ops.push_back(memory("kv_norm", 4.0 * s.of_own_tokens(w.kv)));
  append(ops, gather(s, "tp_gather", 0.0, w.kv_down));
  ops.push_back(gemm("kv_up", GemmPass::forward, s.tokens, w.keys_and_values, w.kv));
  ops.push_back(memory("rope", rotary_bytes(s, w)));
  append(ops, core);
  append(ops, row_parallel_forward(s, "proj", s.head_width));
  return ops;
}

Ops latent_attention_backward(const LayerSizes& s, const Ops& core) {
  const Widths w{s};
  Ops ops = row_parallel_backward(s, s.head_width, "proj_dgrad", "proj_wgrad");
  append(ops, core);
  ops.push_back(memory("rope_bwd", rotary_bytes(s, w)));
  add_up_backward(s, "kv_up_dgrad", "kv_up_wgrad", w.keys_and_values, w.kv, ops);
  ops.push_back(memory("kv_norm_bwd", 8.0 * s.of_own_tokens(w.kv)));
  add_product_backward(s, "kv_down_dgrad", "kv_down_wgrad", w.kv_down, s.hidden, ops);
  if (w.q > 0) {
    add_up_backward(s, "q_up_dgrad", "q_up_wgrad", w.queries, w.q, ops);
    ops.push_back(memory("q_norm_bwd", 8.0 * s.of_own_tokens(w.q)));
    add_product_backward(s, "q_down_dgrad", "q_down_wgrad", w.q, s.hidden, ops);
  } else {
    append(ops, column_parallel_backward(s, w.queries, "q_dgrad", "q_wgrad"));
  }
  // Queries and keys were made of one input: their gradients are summed.
  ops.push_back(memory("input_grad_sum", 6.0 * s.own_tensor));
  return ops;
}

}  // namespace orrery
