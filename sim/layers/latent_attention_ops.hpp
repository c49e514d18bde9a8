#pragma once

#include "sim/layers/layer_parts.hpp"

namespace orrery {

/// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1) between a layer's norm
/// and its residual sum, on one rank.
///
/// Shapes   q, c: ranks of queries and keys; dn, dr, dv: head dimensions without and with position,
///          and of values; T, T', h, a, t as in layer_ops.hpp. Forward products (m, n, k):
///          q_down (T', q, h), q_up (T, a (dn + dr) / t, q), kv_down (T', c + dr, h),
///          kv_up (T, a (dn + dv) / t, c), proj (T, h, a dv / t); without q (T, a (dn + dr)/t, h)
/// Parallel Down-projections are whole on every rank, over its own tokens where these are split;
///          what is gathered before the up-projections are the latents (Megatron Core,
///          transformer/multi_latent_attention.py).
/// `core`: attention itself, between the products.
Ops latent_attention_forward(const LayerSizes& s, const Ops& core);
Ops latent_attention_backward(const LayerSizes& s, const Ops& core);
/// Of the forward pass the norms of the latents, the up-projections and the positions.
Ops latent_up_forward(const LayerSizes& s);

}  // namespace orrery
