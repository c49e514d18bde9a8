#pragma once

#include <span>

#include "sim/layers/layer_parts.hpp"

namespace orrery {

/// The mixture of experts between a layer's second norm and residual sum, on one rank: router,
/// permutation, dispatch, experts, combine, and the shared experts, after them or concurrent.
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

/// The same in parts between the exchanges: a rank's operations before dispatch, its experts' on
/// the rows that each of them gets, and those after combine.
Ops before_experts_forward(const LayerSizes& s);
Ops of_experts_forward(const LayerSizes& s, std::span<const std::int64_t> rows);
Ops after_experts_forward(const LayerSizes& s);
Ops before_experts_backward(const LayerSizes& s);
Ops of_experts_backward(const LayerSizes& s, std::span<const std::int64_t> rows);
Ops after_experts_backward(const LayerSizes& s);
/// The parts that can be recomputed separately: the routed experts' activation, the shared experts.
Ops routed_activation(const LayerSizes& s, std::span<const std::int64_t> rows);
Ops shared_experts_forward(const LayerSizes& s);
/// The shared experts if the plan overlaps them with the exchanges (Megatron Core,
/// transformer/moe/shared_experts.py): the first product with dispatch, the second with combine;
/// the exchanges of tensor ranks are in `before` and `after`. All are empty otherwise.
struct SharedOps {
  Ops before, during_dispatch, during_combine, after;
};
SharedOps shared_overlap_forward(const LayerSizes& s);
SharedOps shared_overlap_backward(const LayerSizes& s);
/// Rows of each local expert under even routing.
std::vector<std::int64_t> even_rows(const LayerSizes& s);

}  // namespace orrery
