#include "sim/layers/attention_ops.hpp"

#include <algorithm>
#include <cmath>

#include "sim/layers/adapters.hpp"

namespace orrery {
namespace {

// Transformer Engine takes FlashAttention 2 for deterministic kernels before Hopper, and on
// Blackwell if there is dropout, as cuDNN has no such backward pass there
// (dot_product_attention/utils.py, get_attention_backend; common/fused_attn/fused_attn.cpp).
bool leaves_cudnn(const Software& software, Architecture architecture) {
  if (!software.deterministic) return false;
  return architecture < Architecture::hopper ||
         (software.dropout && architecture >= Architecture::blackwell);
}

AttentionKernel attention_kernel(const Scenario& s) {
  if (leaves_cudnn(s.software, s.system.gpu.architecture))
    return AttentionKernel::deterministic_flash_attention_2;
  return attention_kernel_of(s.software.attention_library, s.system.gpu.architecture);
}

// Mean over the tokens of what each attends to, of the rank with the most: the others wait for it
// after each micro-batch where these meet all ranks (shards of weights or gradients, experts), else
// at the end of a step, over which differences of sequences even out.
double attended_by_the_slowest(const Plan& plan) {
  const PackedLengths lengths = packed(plan.documents, plan.seq);
  const bool each = plan.shards_passes() || (plan.ep > 1 && plan.dp > 1);
  const double sequences =
      static_cast<double>(plan.mbs) * (each ? 1.0 : static_cast<double>(plan.microbatches));
  const double slowest =
      1.0 + largest_of_normals(plan.dp) * lengths.variation / std::sqrt(sequences);
  return std::min(lengths.attended * slowest, static_cast<double>(plan.seq));
}

// One rank's share of a layer's attention.
struct Heads {
  Heads(const Scenario& s, LayerKind kind) : Heads{s, kind, s.shape_of(kind)} {}
  Heads(const Scenario& s, LayerKind kind, const Model& layer)
      : plan{s.plan},
        window{kind.window},
        chunked{layer.chunked_window && kind.window > 0},
        dropout{s.software.dropout},
        queries{layer.heads / s.plan.tp},
        keys{std::max<std::int64_t>(1, layer.kv_heads / s.plan.tp)},
        dim{(layer.head_dim + value_width(layer)) / 2},
        key_share{static_cast<double>(layer.head_dim) /
                  static_cast<double>(layer.head_dim + value_width(layer))},
        kernel{attention_kernel(s)},
        format{s.plan.fp8_attention && kernel == AttentionKernel::cudnn ? s.plan.dtype
                                                                        : Dtype::bf16},
        element{unquantised_bytes(s.plan.dtype)},
        tokens{static_cast<double>(s.tokens_per_microbatch())},
        sequences{plan.mbs},
        length{plan.seq} {
    if (!plan.documents.given()) return;
    const double attended = attended_by_the_slowest(plan);
    const double all = static_cast<double>(plan.mbs * plan.seq);
    sequences = std::max<std::int64_t>(1, std::llround(all / attended));
    length = std::max<std::int64_t>(
        2 * plan.cp, std::llround(std::sqrt(all * attended / static_cast<double>(sequences))));
  }

  double scores() const {
    return static_cast<double>(plan.mbs * queries * plan.seq) * static_cast<double>(plan.seq);
  }
  // Bytes of the channels of `heads` heads over the rank's own tokens.
  double bytes_of(std::int64_t heads) const {
    return element * tokens * static_cast<double>(heads * dim);
  }
  double key_value_bytes() const { return bytes_of(2 * keys); }

  const Plan& plan;
  std::int64_t window;
  bool chunked;  // The window is the chunk that a query lies in.
  bool dropout;
  std::int64_t queries, keys, dim;
  double key_share;
  AttentionKernel kernel;
  Dtype format;
  double element;  // Bytes.
  double tokens;
  // Sequences of a micro-batch and their length for fused kernels: of packed documents as many
  // equal ones as have the same tokens and the same pairs of a query and a key.
  std::int64_t sequences, length;
};

Op batched(std::string_view name, const Heads& h, std::int64_t m, std::int64_t n, std::int64_t k) {
  Op op;
  op.kind = Op::Kind::batched_gemm;
  op.name = name;
  op.batch = h.plan.mbs * h.queries;
  op.m = m, op.n = n, op.k = k;
  const double elements =
      static_cast<double>(m * n) + static_cast<double>(m * k) + static_cast<double>(k * n);
  op.bytes = Bytes{h.element * static_cast<double>(op.batch) * elements};
  return op;
}

Op fused(const Heads& h, bool backward, std::int64_t queries, std::int64_t keys, bool causal) {
  Op op;
  op.kind = Op::Kind::attention;
  op.name = backward ? "attention_bwd" : "attention";
  op.batch = h.sequences;
  op.queries = queries;
  op.keys = keys;
  op.causal = causal;
  op.window = h.window < keys ? h.window : 0;
  op.heads = h.queries;
  op.kv_heads = h.keys;
  op.head_dim = h.dim;
  op.key_share = h.key_share;
  op.attention_kernel = h.kernel;
  op.attention_format = h.format;
  op.backward = backward;
  return op;
}

// All tokens of the sequences by one kernel, of chunks of them by one of each length.
Ops whole(const Heads& h, bool backward) {
  if (!h.chunked) return {fused(h, backward, h.length, h.length, true)};
  Ops ops;
  const auto add = [&](std::int64_t chunks, std::int64_t tokens) {
    if (chunks == 0 || tokens == 0) return;
    ops.push_back(fused(h, backward, tokens, tokens, true));
    ops.back().batch *= chunks;
    ops.back().window = 0;
  };
  add(h.length / h.window, h.window);
  add(1, h.length % h.window);
  return ops;
}

Op exchange(std::string_view name, CollectiveKind kind, double bytes, double hidden = 0.0) {
  return collective(name, kind, bytes, hidden, GroupKind::context);
}

// Scores are written, scaled, masked and normalised by one kernel (read and written), dropped out
// by another (read, written, a byte of mask), and read again.
Ops unfused_forward(const Heads& h) {
  const std::int64_t q = h.plan.seq;
  Ops ops{batched("scores", h, q, q, h.dim), memory("softmax", 2.0 * h.element * h.scores())};
  if (h.dropout) ops.push_back(memory("attention_dropout", (2.0 * h.element + 1.0) * h.scores()));
  ops.push_back(batched("values", h, q, h.dim, q));
  return ops;
}

Ops unfused_backward(const Heads& h) {
  const std::int64_t q = h.plan.seq;
  Ops ops{batched("values_dgrad", h, q, q, h.dim), batched("values_wgrad", h, q, h.dim, q)};
  if (h.dropout)
    ops.push_back(memory("attention_dropout_bwd", (2.0 * h.element + 1.0) * h.scores()));
  ops.push_back(memory("softmax_bwd", 3.0 * h.element * h.scores()));
  ops.push_back(batched("scores_dgrad", h, q, h.dim, q));
  ops.push_back(batched("scores_wgrad", h, q, h.dim, q));
  return ops;
}

// A rank's own part of the ring's first round is a causal square of its s/cp tokens. The keys of
// each other round lie before the rank's first part or between its two: all queries see half of
// them, or half of the queries see all. Some rank has the second kind in every such round, with
// fewer and longer blocks; as the ring follows the slowest rank, all have its cost.
Op ring_kernel(const Heads& h, bool backward, int round) {
  const std::int64_t own = h.length / h.plan.cp;
  return round == 0 ? fused(h, backward, own, own, true) : fused(h, backward, own / 2, own, false);
}

// The last round receives nothing. Each round's output is rescaled and added to the sum (two read,
// one written); rounds after the first do so for half of the rank's queries.
Ops ring_forward(const Heads& h) {
  Ops ops;
  const int rounds = h.plan.cp;
  for (int round = 0; round < rounds; ++round) {
    if (round + 1 < rounds)
      ops.push_back(exchange("cp_ring", CollectiveKind::send_recv, h.key_value_bytes(), 1.0));
    ops.push_back(ring_kernel(h, false, round));
  }
  const double merged = 1.0 + 0.5 * (rounds - 1);
  ops.push_back(memory("attention_merge", 3.0 * merged * h.bytes_of(h.queries)));
  return ops;
}

// Keys and values go round again, followed by the gradients accumulated for them, which start a
// round later and return after the last. Each round adds to the gradients of queries, keys and
// values.
Ops ring_backward(const Heads& h) {
  Ops ops;
  const int rounds = h.plan.cp;
  for (int round = 0; round < rounds; ++round) {
    const int tensors = (round + 1 < rounds ? 1 : 0) + (round > 0 ? 1 : 0);
    ops.push_back(
        exchange("cp_ring_grad", CollectiveKind::send_recv, tensors * h.key_value_bytes(), 1.0));
    ops.push_back(ring_kernel(h, true, round));
  }
  const double merged = 0.5 * (rounds - 1);
  ops.push_back(memory("attention_merge_bwd", 3.0 * merged * h.bytes_of(h.queries + 2 * h.keys)));
  return ops;
}

// Parts i and 2 cp - 1 - i together see the same number of keys on every rank; the first rank's
// second part has the longest blocks, so that it finishes last. A window limits the keys of a part,
// so that the last rank, with the two parts in the middle, has the most; a part gets no more keys
// than its first query's window and its own (get_kv_seq_info_after_all_gather).
Ops gathered_kernels(const Heads& h, bool backward) {
  const std::int64_t part = h.length / (2 * h.plan.cp);
  const auto kernel = [&](std::int64_t before) {
    const std::int64_t seen = h.window > 0 ? std::min(before, h.window - 1) : before;
    return fused(h, backward, part, seen + part, true);
  };
  if (h.window == 0) return {kernel(0), kernel(h.length - part)};
  return {kernel((h.plan.cp - 1) * part), kernel(h.plan.cp * part)};
}

Ops gathered(const Heads& h, bool backward) {
  const double whole = h.plan.cp * h.key_value_bytes();
  Ops ops{exchange("cp_gather", CollectiveKind::all_gather, whole)};
  for (const Op& kernel : gathered_kernels(h, backward)) ops.push_back(kernel);
  if (backward) ops.push_back(exchange("cp_reduce_grad", CollectiveKind::reduce_scatter, whole));
  return ops;
}

// Tokens are exchanged for heads: the queries, keys and values of a rank's own tokens, a cp-th of
// the heads to each other rank; after the kernel the values' heads return. Backward is alike. Of
// fewer key/value heads than ranks copies are made first, whose gradients are summed (DeepSpeed,
// runtime/sequence_parallel/ulysses_sp.py, kv_replication_factor).
Ops swapped(const Heads& h, bool backward) {
  const std::int64_t sent = std::max<std::int64_t>(h.keys, h.plan.cp);
  Heads fewer = h;
  fewer.queries /= h.plan.cp;
  fewer.keys = sent / h.plan.cp;
  const auto swap = [&](std::string_view name, double bytes) {
    return exchange(name, CollectiveKind::all_to_all, bytes);
  };
  const Op heads = swap("cp_swap_heads", h.bytes_of(h.queries));
  const Op inputs = swap("cp_swap_inputs", h.bytes_of(h.queries + 2 * sent));
  Ops ops{backward ? heads : inputs};
  append(ops, whole(fewer, backward));
  ops.push_back(backward ? inputs : heads);
  if (sent > h.keys)
    ops.insert(
        backward ? ops.end() : ops.begin(),
        memory(backward ? "keys_copies_bwd" : "keys_copies", h.bytes_of(2 * (h.keys + sent))));
  return ops;
}

Ops core_attention(const Scenario& scenario, LayerKind kind, bool backward) {
  const Heads h{scenario, kind};
  if (!h.plan.fused_attention) return backward ? unfused_backward(h) : unfused_forward(h);
  if (h.plan.cp == 1) return whole(h, backward);
  switch (h.plan.cp_comm) {
    case ContextExchange::p2p:
      break;
    case ContextExchange::all_gather:
      return gathered(h, backward);
    case ContextExchange::a2a:
      return swapped(h, backward);
  }
  return backward ? ring_backward(h) : ring_forward(h);
}

}  // namespace

Ops core_attention_forward(const Scenario& scenario, LayerKind kind) {
  return core_attention(scenario, kind, false);
}
Ops core_attention_backward(const Scenario& scenario, LayerKind kind) {
  return core_attention(scenario, kind, true);
}

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

// Positions enter a part of each query in place; keys are joined from their own part and the one
// that all heads share, values are copied: read dn + dv, written dn + dr + dv a head and token.
// Backward moves the gradients likewise.
double rotary_bytes(const LayerSizes& s, const Widths& w) {
  const std::int64_t rotated = s.heads * s.model.latent->rope_dim;
  const std::int64_t values = s.heads * s.model.latent->v_dim;
  return s.element * s.of_tokens(2 * rotated + w.keys_and_values + w.queries + values);
}

// A product that every tensor rank does in full for its own tokens.
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
  append(ops, dequantise(s, static_cast<double>(rank * s.hidden)));
  ops.push_back(own_product(s, name, GemmPass::forward, rank, s.hidden));
  append(ops, adapter_forward(s, name, static_cast<double>(s.own_tokens), s.hidden, rank, false));
}

void add_product_backward(const LayerSizes& s, const Linear& of, std::int64_t n, std::int64_t k,
                          Ops& ops) {
  append(ops, quantise(s, s.of_own_tokens(n)));
  append(ops, dequantise(s, static_cast<double>(n * k)));
  ops.push_back(own_product(s, of.dgrad, GemmPass::dgrad, n, k));
  append(ops, adapter_backward(s, of.name, static_cast<double>(s.own_tokens), k, n, false));
  append_weight_gradient(s, ops, own_product(s, of.wgrad, GemmPass::wgrad, n, k), n, k);
}

void add_up_backward(const LayerSizes& s, const Linear& of, std::int64_t n, std::int64_t k,
                     Ops& ops) {
  append(ops, quantise(s, s.of_tokens(n)));
  append(ops, dequantise(s, static_cast<double>(n * k)));
  ops.push_back(product(s, of.dgrad, GemmPass::dgrad, s.tokens, k, n));
  append(ops, adapter_backward(s, of.name, static_cast<double>(s.tokens), k, n, false));
  append(ops, reduce(s, "tp_reduce_grad", 0.0, k));
  append_weight_gradient(s, ops, product(s, of.wgrad, GemmPass::wgrad, n, k, s.tokens), n, k);
}

// Projects gathered latents (`width`) up to the channels of this rank's heads.
Ops up(const LayerSizes& s, std::string_view norm, std::string_view name, std::int64_t rank,
       std::int64_t width, std::int64_t channels) {
  Ops ops{memory(norm, 2.0 * s.element * s.of_own_tokens(rank))};
  append(ops, gather(s, "tp_gather", 0.0, width));
  append(ops, quantise(s, s.of_tokens(rank)));
  append(ops, dequantise(s, static_cast<double>(channels * rank)));
  ops.push_back(product(s, name, GemmPass::forward, s.tokens, channels, rank));
  append(ops, adapter_forward(s, name, static_cast<double>(s.tokens), rank, channels, false));
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

namespace {

// The output's gate is a product of the layer's input (Kimi-K3).
Linear gate(const LayerSizes& s) { return {"gate", "gate_dgrad", "gate_wgrad", s.head_width}; }

}  // namespace

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
  if (s.model.output_gate) {
    append(ops, column_parallel_forward(s, {gate(s)}));
    ops.push_back(memory("output_gate", 3.0 * s.element * s.of_tokens(s.head_width)));
  }
  append(ops, row_parallel_forward(s, {{"proj", "proj_dgrad", "proj_wgrad", s.head_width}}));
  return ops;
}

Ops latent_attention_backward(const LayerSizes& s, const Ops& core) {
  const Widths w{s};
  Ops ops = row_parallel_backward(s, {{"proj", "proj_dgrad", "proj_wgrad", s.head_width}});
  if (s.model.output_gate) {
    ops.push_back(memory("output_gate_bwd", 5.0 * s.element * s.of_tokens(s.head_width)));
    append(ops, column_parallel_backward(s, {gate(s)}));
  }
  append(ops, core);
  ops.push_back(memory("rope_bwd", rotary_bytes(s, w)));
  add_up_backward(s, {"kv_up", "kv_up_dgrad", "kv_up_wgrad", 0}, w.keys_and_values, w.kv, ops);
  ops.push_back(memory("kv_norm_bwd", 4.0 * s.element * s.of_own_tokens(w.kv)));
  add_product_backward(s, {"kv_down", "kv_down_dgrad", "kv_down_wgrad", 0}, w.kv_down, s.hidden,
                       ops);
  if (w.q > 0) {
    add_up_backward(s, {"q_up", "q_up_dgrad", "q_up_wgrad", 0}, w.queries, w.q, ops);
    ops.push_back(memory("q_norm_bwd", 4.0 * s.element * s.of_own_tokens(w.q)));
    add_product_backward(s, {"q_down", "q_down_dgrad", "q_down_wgrad", 0}, w.q, s.hidden, ops);
  } else {
    append(ops, column_parallel_backward(s, {{"q", "q_dgrad", "q_wgrad", w.queries}}));
  }
  // Queries and keys were made of one input: their gradients are summed.
  ops.push_back(memory("input_grad_sum", 3.0 * s.element * s.own_tensor));
  return ops;
}

}  // namespace orrery
