#pragma once

#include "sim/layers/op.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Attention of one layer on one rank, from queries, keys and values in its registers' reach to one
/// value vector a head: kernels, and under context parallelism the exchange of keys and values.
///
/// Each context rank holds parts i and 2 cp - 1 - i of 2 cp parts of a sequence, so that all have
/// the same share of a causal mask: together the flop of the whole sequence over cp.
///
///     p2p         cp rounds; keys and values go on to the next rank beside the round's kernel
///     all_gather  keys and values of all ranks first, then each part against all before it
///     a2a         queries, keys and values of all heads for the whole sequence of some heads, and
///                 back (Ulysses, Jacobs et al., arXiv 2309.14509)
///
/// A layer with a window attends to fewer keys; as many are gathered or swapped. The ring has no
/// windows: a model that needs them is refused by make_scenario.
///
/// Source: Transformer Engine, attention/dot_product_attention/context_parallel.py; the balanced
/// parts are Megatron-LM's, get_batch_on_this_cp_rank. docs/COST.md has the bytes.
Ops core_attention_forward(const Scenario& scenario, LayerKind kind = LayerKind::dense);
Ops core_attention_backward(const Scenario& scenario, LayerKind kind = LayerKind::dense);

}  // namespace orrery
