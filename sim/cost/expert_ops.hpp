#pragma once

#include "sim/cost/layer_parts.hpp"

namespace orrery {

/// The mixture of experts between a layer's second norm and residual sum, on one rank: router,
/// permutation, dispatch, experts, combine, and the shared experts after or beside them.
///
/// Shapes   T' own tokens, k experts a token, E experts of width g in all, e = ep, u = etp; a rank
///          holds E / e experts of g / u channels and processes R = u T' k rows where routing is
///          uniform. An expert with r rows: fc1 (r, g/u, or 2 g/u gated, h), fc2 (r, h, g/u).
/// Exchange dispatch sends k copies of each token, T' k h values a rank, of which those for other
///          ranks leave; combine brings them back. Backward exchanges gradients the same way.
///          Tensor ranks of an expert gather its rows first and reduce-scatter its results.
/// Source   Megatron Core, transformer/moe/token_dispatcher.py (MoEAlltoAllTokenDispatcher) and
///          moe_utils.py; docs/MOE.md lists every pass over memory.
Ops experts_forward(const LayerSizes& s);
Ops experts_backward(const LayerSizes& s);

}  // namespace orrery
