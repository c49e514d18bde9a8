#pragma once

#include "sim/layers/layer_parts.hpp"

namespace orrery {

/// The operations of a mixer that keeps a state in place of keys and values, on one rank: products
/// that read the layer's input, a causal convolution, a scan over the sequence, a gated norm, and
/// the product of its output (StateWork).
///
/// Tensor  Ranks have some of the heads; the first products are column-parallel and the last one is
///         row-parallel, as attention's are.
///         In Mamba-1 each rank computes partial sums of the scan's inputs from its own channels:
///         an all-reduce adds them up, and another one adds up their gradients.
/// Context Ranks exchange tokens for heads before the convolution and back after the norm (Megatron
///         Core, ssm/mamba_context_parallel.py): a scan needs whole sequences.
/// Formats The convolution, the scan and the norm stay in 16 bits.
Ops state_mixer_forward(const LayerSizes& s);
Ops state_mixer_backward(const LayerSizes& s);

/// Bytes that the mixer keeps of each token for its backward pass, without the layer's norm. `own`
/// is the size of an element that products read, `element` that of other tensors' elements.
double kept_by_state_mixer(const LayerSizes& s, double own, double element);

}  // namespace orrery
