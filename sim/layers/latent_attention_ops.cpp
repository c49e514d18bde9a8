#include "sim/layers/latent_attention_ops.hpp"

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
  return s.element * s.of_tokens(2 * rotated + w.keys_and_values + w.queries + values);
}

// A product that every tensor rank does whole for its own tokens.
Op own_product(const LayerSizes& s, std::string_view name, GemmPass pass, std::int64_t n,
               std::int64_t k) {
  switch (pass) {
    case GemmPass::forward:
      return product(s, name, pass, s.own_tokens, n, k);
    case GemmPass::dgrad:
      return product(s, name, pass, s.own_tokens, k, n);
    case GemmPass::wgrad:
      break;
  }
  return product(s, name, pass, n, k, s.own_tokens);
}

void add_down(const LayerSizes& s, std::string_view name, std::int64_t rank, Ops& ops) {
  append(ops, quantise(s, s.own_tensor));
  ops.push_back(own_product(s, name, GemmPass::forward, rank, s.hidden));
}

void add_product_backward(const LayerSizes& s, std::string_view dgrad, std::string_view wgrad,
                          std::int64_t n, std::int64_t k, Ops& ops) {
  append(ops, quantise(s, s.of_own_tokens(n)));
  ops.push_back(own_product(s, dgrad, GemmPass::dgrad, n, k));
  ops.push_back(own_product(s, wgrad, GemmPass::wgrad, n, k));
  ops.push_back(accumulate(s, n, k));
}

void add_up_backward(const LayerSizes& s, std::string_view dgrad, std::string_view wgrad,
                     std::int64_t n, std::int64_t k, Ops& ops) {
  append(ops, quantise(s, s.of_tokens(n)));
  ops.push_back(product(s, dgrad, GemmPass::dgrad, s.tokens, k, n));
  append(ops, reduce(s, "tp_reduce_grad", 0.0, k));
  ops.push_back(product(s, wgrad, GemmPass::wgrad, n, k, s.tokens));
  ops.push_back(accumulate(s, n, k));
}

}  // namespace

namespace {

// Gathered latents (`width`) to the channels of this rank's heads.
Ops up(const LayerSizes& s, std::string_view norm, std::string_view name, std::int64_t rank,
       std::int64_t width, std::int64_t channels) {
  Ops ops{memory(norm, 2.0 * s.element * s.of_own_tokens(rank))};
  append(ops, gather(s, "tp_gather", 0.0, width));
  append(ops, quantise(s, s.of_tokens(rank)));
  ops.push_back(product(s, name, GemmPass::forward, s.tokens, channels, rank));
  return ops;
}

Ops query_up(const LayerSizes& s, const Widths& w) {
  return w.q > 0 ? up(s, "q_norm", "q_up", w.q, w.q, w.queries) : Ops{};
}

Ops key_up(const LayerSizes& s, const Widths& w) {
  Ops ops = up(s, "kv_norm", "kv_up", w.kv, w.kv_down, w.keys_and_values);
  ops.push_back(memory("rope", rotary_bytes(s, w)));
  return ops;
}

}  // namespace

Ops latent_up_forward(const LayerSizes& s) {
  const Widths w{s};
  Ops ops = query_up(s, w);
  append(ops, key_up(s, w));
  return ops;
}

Ops latent_attention_forward(const LayerSizes& s, const Ops& core) {
  const Widths w{s};
  Ops ops;
  if (w.q > 0) {
    add_down(s, "q_down", w.q, ops);
    append(ops, query_up(s, w));
  } else {
    append(ops, column_parallel_forward(s, {{"q", "q_dgrad", "q_wgrad", w.queries}}));
  }
  add_down(s, "kv_down", w.kv_down, ops);
  append(ops, key_up(s, w));
  append(ops, core);
  append(ops, row_parallel_forward(s, {{"proj", "proj_dgrad", "proj_wgrad", s.head_width}}));
  return ops;
}

Ops latent_attention_backward(const LayerSizes& s, const Ops& core) {
  const Widths w{s};
  Ops ops = row_parallel_backward(s, {{"proj", "proj_dgrad", "proj_wgrad", s.head_width}});
  append(ops, core);
  ops.push_back(memory("rope_bwd", rotary_bytes(s, w)));
  add_up_backward(s, "kv_up_dgrad", "kv_up_wgrad", w.keys_and_values, w.kv, ops);
  ops.push_back(memory("kv_norm_bwd", 4.0 * s.element * s.of_own_tokens(w.kv)));
  add_product_backward(s, "kv_down_dgrad", "kv_down_wgrad", w.kv_down, s.hidden, ops);
  if (w.q > 0) {
    add_up_backward(s, "q_up_dgrad", "q_up_wgrad", w.queries, w.q, ops);
    ops.push_back(memory("q_norm_bwd", 4.0 * s.element * s.of_own_tokens(w.q)));
    add_product_backward(s, "q_down_dgrad", "q_down_wgrad", w.q, s.hidden, ops);
  } else {
    append(ops, column_parallel_backward(s, {{"q", "q_dgrad", "q_wgrad", w.queries}}));
  }
  // Queries and keys were made of one input: their gradients are summed.
  ops.push_back(memory("input_grad_sum", 3.0 * s.element * s.own_tensor));
  return ops;
}

}  // namespace orrery
