#pragma once

#include "sim/cost/op.hpp"
#include "sim/input/scenario.hpp"

namespace orrery {

/// The kernels and tensor-parallel collectives of each part of a dense decoder on one rank, in the
/// order in which they run.
///
/// Shapes   T = micro-batch x sequence tokens; h hidden, a heads, d head dim, k kv heads, f MLP
///          width, V padded vocabulary, t = tp; T' = T/t with sequence parallelism, else T.
///          Forward GEMM (m,n,k); its dgrad is (m,k,n), its wgrad (n,k,m).
/// Units    2 bytes an activation; GEMM flop counts a multiply-add as 2.
/// Pairing  A column-parallel GEMM (qkv, fc1) feeds a row-parallel one (proj, fc2), so that a block
///          needs one all-reduce forward and one backward (Shoeybi et al., arXiv 1909.08053,
///          figure 3). Sequence parallelism sends the same bytes as reduce-scatter and all-gather
///          (Korthikanti et al., arXiv 2205.05198, figure 5).
/// Source   docs/COST.md lists every pass over memory and where its byte count is from.
Ops layer_forward(const Scenario& scenario);
Ops layer_backward(const Scenario& scenario);
/// What the plan computes again before a layer's backward pass; empty for Recompute::none.
Ops layer_recompute(const Scenario& scenario);

Ops embedding_forward(const Scenario& scenario);
Ops embedding_backward(const Scenario& scenario);
/// Final norm, output head and cross-entropy.
Ops head_forward(const Scenario& scenario);
Ops head_backward(const Scenario& scenario);

/// Parameters that one rank of virtual stage `stage` holds: its layers' share of tp, and embedding
/// and head where they live. Biases and norms are not split.
std::int64_t parameters_on_rank(const Scenario& scenario, int virtual_stage);

}  // namespace orrery
