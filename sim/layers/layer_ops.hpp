#pragma once

#include <span>

#include "sim/layers/op.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// The kernels and collectives of each part of a decoder on one rank, in the order in which they
/// run. Experts are in expert_ops.hpp, latent attention in attention_ops.hpp.
///
/// Shapes   T = micro-batch x sequence tokens; h hidden, a heads, d head dim, k kv heads, f MLP
///          width, V padded vocabulary, t = tp; T' = T/t with sequence parallelism, else T.
///          Forward GEMM (m,n,k); its dgrad is (m,k,n), its wgrad (n,k,m).
/// Units    2 bytes an activation; GEMM flop counts a multiply-add as 2.
/// Pairing  A column-parallel GEMM (qkv, fc1) feeds a row-parallel one (proj, fc2), so that a block
///          needs one all-reduce forward and one backward (Shoeybi et al., arXiv 1909.08053,
///          figure 3). Sequence parallelism sends the same bytes as reduce-scatter and all-gather
///          (Korthikanti et al., arXiv 2205.05198, figure 5).
/// Source   docs/explanation/layers.md lists every pass over memory and the source of its bytes.
Ops layer_forward(const Scenario& scenario, LayerKind kind = LayerKind::dense);
Ops layer_backward(const Scenario& scenario, LayerKind kind = LayerKind::dense);

/// A layer with experts in parts: before dispatch, after combine, and concurrent with each
/// exchange. The experts between them are in expert_ops.hpp.
struct LayerEnds {
  Ops before;
  Ops during_dispatch = {}, during_combine = {};
  Ops after;
};
LayerEnds layer_ends_forward(const Scenario& scenario, LayerKind kind = LayerKind::experts);
LayerEnds layer_ends_backward(const Scenario& scenario, LayerKind kind = LayerKind::experts);

Ops embedding_forward(const Scenario& scenario);
Ops embedding_backward(const Scenario& scenario);
/// The input of a prediction module's layer: the next token's embedding and the hidden state, each
/// with a norm, projected together (DeepSeek-V3, arXiv 2412.19437, section 2.2).
Ops prediction_forward(const Scenario& scenario);
Ops prediction_backward(const Scenario& scenario);
/// Final norm, output head and cross-entropy.
Ops head_forward(const Scenario& scenario);
Ops head_backward(const Scenario& scenario);

/// Operations that the plan recomputes before a layer's backward pass, with evenly filled experts;
/// empty for Recompute::none.
///
/// Full      the whole forward pass with its collectives.
/// Selective the forward ops of each part that the plan names (RecomputeModule), in the layer's
///           order; parts that a layer does not have cost nothing.
/// Source    Megatron Core, transformer/transformer_config.py, recompute_modules.
Ops layer_recompute(const Scenario& scenario, LayerKind kind = LayerKind::dense);

/// The parts of a selective choice that need no exchange of tokens, in a layer with experts: all
/// but RecomputeModule::moe. `rows` are those of each of the rank's experts.
Ops recompute_without_exchange(const Scenario& scenario, LayerKind kind,
                               std::span<const std::int64_t> rows);

}  // namespace orrery
