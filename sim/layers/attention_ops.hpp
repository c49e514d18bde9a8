#pragma once

#include "sim/layers/layer_parts.hpp"
#include "sim/layers/op.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Attention of one layer on one rank, from queries, keys and values to one value vector a head:
/// kernels, and under context parallelism the exchange of keys and values.
///
/// Each context rank holds parts i and 2 cp - 1 - i of 2 cp parts of a sequence, so that all have
/// the same share of a causal mask: together the flop of the whole sequence over cp.
///
///     p2p         cp rounds; keys and values go on to the next rank during the round's kernel
///     all_gather  keys and values of all ranks first, then each part against all before it
///     a2a         queries, keys and values of all heads for the whole sequence of some heads, and
///                 back (Ulysses, Jacobs et al., arXiv 2309.14509)
///
/// A layer with a window attends to fewer keys; as many are gathered or swapped. The ring has no
/// windows: make_scenario refuses a model that needs them.
///
/// Source: Transformer Engine, attention/dot_product_attention/context_parallel.py; the balanced
/// parts are Megatron-LM's, get_batch_on_this_cp_rank. docs/explanation/layers.md has the bytes.
Ops core_attention_forward(const Scenario& scenario, LayerKind kind = LayerKind::dense);
Ops core_attention_backward(const Scenario& scenario, LayerKind kind = LayerKind::dense);

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1) between a layer's norm
/// and its residual sum, on one rank.
///
/// Shapes   q, c: ranks of queries and keys; dn, dr, dv: head dimensions without and with position,
///          and of values; T, T', h, a, t as in layer_ops.hpp. Forward products (m, n, k):
///          q_down (T', q, h), q_up (T, a (dn + dr) / t, q), kv_down (T', c + dr, h),
///          kv_up (T, a (dn + dv) / t, c), proj (T, h, a dv / t); without q (T, a (dn + dr)/t, h)
/// Parallel Down-projections are whole on every rank, over its own tokens where these are split;
///          the latents are gathered before the up-projections (Megatron Core,
///          transformer/multi_latent_attention.py).
/// The attention between the products is `core`.
Ops latent_attention_forward(const LayerSizes& s, const Ops& core);
Ops latent_attention_backward(const LayerSizes& s, const Ops& core);
/// The norms of the latents, the up-projections and the positions of the forward pass.
Ops latent_up_forward(const LayerSizes& s);

}  // namespace orrery
