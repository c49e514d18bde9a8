#pragma once

#include <span>

#include "sim/layers/op.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// The kernels and collectives of each part of a decoder on one rank, in the order in which they
/// run. expert_ops.hpp and latent_attention_ops.hpp have the parts that not every model has.
///
/// Shapes   T = micro-batch x sequence tokens; h hidden, a heads, d head dim, k kv heads, f MLP
///          width, V padded vocabulary, t = tp; T' = T/t with sequence parallelism, else T.
///          Forward GEMM (m,n,k); its dgrad is (m,k,n), its wgrad (n,k,m).
/// Units    2 bytes an activation; GEMM flop counts a multiply-add as 2.
/// Pairing  A column-parallel GEMM (qkv, fc1) feeds a row-parallel one (proj, fc2), so that a block
///          needs one all-reduce forward and one backward (Shoeybi et al., arXiv 1909.08053,
///          figure 3). Sequence parallelism sends the same bytes as reduce-scatter and all-gather
///          (Korthikanti et al., arXiv 2205.05198, figure 5).
/// Source   docs/explanation/layers.md lists every pass over memory and where its byte count is
/// from.
Ops layer_forward(const Scenario& scenario, LayerKind kind = LayerKind::dense);
Ops layer_backward(const Scenario& scenario, LayerKind kind = LayerKind::dense);

/// A layer with experts in parts: before its tokens leave for their experts, and after they are
/// back, and what runs beside their ways. expert_ops.hpp has what experts do between.
struct LayerEnds {
  Ops before;
  Ops beside_dispatch = {}, beside_combine = {};
  Ops after;
};
LayerEnds layer_ends_forward(const Scenario& scenario, LayerKind kind = LayerKind::experts);
LayerEnds layer_ends_backward(const Scenario& scenario, LayerKind kind = LayerKind::experts);

Ops embedding_forward(const Scenario& scenario);
Ops embedding_backward(const Scenario& scenario);
/// What stands before the layer of a prediction module: the next token's embedding and the hidden
/// state, each with a norm, projected together (DeepSeek-V3, arXiv 2412.19437, section 2.2).
Ops prediction_forward(const Scenario& scenario);
Ops prediction_backward(const Scenario& scenario);
/// Final norm, output head and cross-entropy.
Ops head_forward(const Scenario& scenario);
Ops head_backward(const Scenario& scenario);

/// What the plan computes again before a layer's backward pass, experts being filled evenly; empty
/// for Recompute::none.
///
/// Full      the whole forward pass with its collectives.
/// Selective the forward ops of each part that the plan names (RecomputeModule), in the layer's
///           order; parts that a layer does not have cost nothing.
/// Source    Megatron Core, transformer/transformer_config.py, recompute_modules.
Ops layer_recompute(const Scenario& scenario, LayerKind kind = LayerKind::dense);

/// Of a selective choice in a layer with experts, what takes no exchange of tokens: all parts but
/// RecomputeModule::moe. `rows`: of each of the rank's experts.
Ops recompute_beside_exchanges(const Scenario& scenario, LayerKind kind,
                               std::span<const std::int64_t> rows);

}  // namespace orrery
