#pragma once

#include <span>

#include "sim/layers/layer_parts.hpp"

namespace orrery {

/// The mixture of experts between a layer's second norm and residual sum, on one rank: router,
/// permutation, dispatch, experts, combine, and the shared experts after or beside them.
///
/// Shapes   T' own tokens, k experts a token, E experts of width g in all, e = ep, u = etp; a rank
///          holds E / e experts of g / u channels and processes R = u T' k rows where routing is
///          uniform. An expert with r rows: fc1 (r, g/u, or 2 g/u gated, h), fc2 (r, h, g/u).
/// Exchange dispatch sends k copies of each token, T' k h values a rank, of which those for other
///          ranks leave; combine brings them back. Backward exchanges gradients likewise. Tensor
///          ranks of an expert gather its rows first and reduce-scatter its results.
/// Source   Megatron Core, transformer/moe/token_dispatcher.py (MoEAlltoAllTokenDispatcher) and
///          moe_utils.py; docs/explanation/moe.md lists every pass over memory.
Ops experts_forward(const LayerSizes& s);
Ops experts_backward(const LayerSizes& s);

/// The same in parts, between which tokens are exchanged: what a rank does before they leave, what
/// its experts do with the rows that they get (`rows`: of each), and what follows when they are
/// back.
Ops before_experts_forward(const LayerSizes& s);
Ops of_experts_forward(const LayerSizes& s, std::span<const std::int64_t> rows);
Ops after_experts_forward(const LayerSizes& s);
Ops before_experts_backward(const LayerSizes& s);
Ops of_experts_backward(const LayerSizes& s, std::span<const std::int64_t> rows);
Ops after_experts_backward(const LayerSizes& s);
/// What of it is computed again alone: the routed experts' activation, the shared experts.
Ops routed_activation(const LayerSizes& s, std::span<const std::int64_t> rows);
Ops shared_experts_forward(const LayerSizes& s);
/// The shared experts, where the plan runs them beside the exchanges (Megatron Core,
/// transformer/moe/shared_experts.py): the first product beside dispatch, the second beside
/// combine; what tensor ranks exchange stands before and after. All empty where it does not.
struct SharedOps {
  Ops before, beside_dispatch, beside_combine, after;
};
SharedOps shared_beside_forward(const LayerSizes& s);
SharedOps shared_beside_backward(const LayerSizes& s);
/// Rows of each local expert where routing is even.
std::vector<std::int64_t> even_rows(const LayerSizes& s);

}  // namespace orrery
