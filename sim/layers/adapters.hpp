#pragma once

#include <cstdint>
#include <string_view>

#include "sim/layers/layer_parts.hpp"

namespace orrery {

/// Adapters of low rank beside frozen linear layers: y = W x + s B A D x, with A of r x in, B of
/// out x r, a scale s, and D a dropout if there is one (LoRA, arXiv 2106.09685, section 4.1).
///
/// They are priced as the traffic of their tensors, since r is far too small to keep a GPU's
/// products busy. One by one, as PEFT runs them (peft/tuners/lora/layer.py, Linear.forward):
/// forward the dropout, both products, scale and sum; backward the scale, the gradients of B, of
/// what A gave, of A and of the input, the dropout and the sum of the input's gradients. Fused, as
/// NeMo AutoModel does it (components/_peft/lora_kernel.py): forward one kernel and the sum,
/// backward one for the gradients of A and the input, one for that of B, and the sum.

/// The target that a product of this name belongs to ("qkv", "experts_fc1", "mixer_in").
LoraTarget lora_target(std::string_view product);
/// True if the plan puts an adapter beside the product.
bool has_adapter(const LayerSizes& s, std::string_view product);

/// Its operations in a forward pass of `rows` tokens, and in a backward pass; empty without an
/// adapter. Of the two widths that of hidden channels is whole on each tensor rank; `sums` says
/// that the output is summed over tensor ranks, as that of a row-parallel layer.
Ops adapter_forward(const LayerSizes& s, std::string_view product, double rows, std::int64_t in,
                    std::int64_t out, bool sums);
Ops adapter_backward(const LayerSizes& s, std::string_view product, double rows, std::int64_t in,
                     std::int64_t out, bool sums);

/// A frozen weight of n x k made of four bits, before a product reads it; empty otherwise.
Ops dequantise(const LayerSizes& s, double weights);

/// Parameters of a layer's adapters on a rank: beside layers that all data-parallel ranks have, and
/// beside routed experts, which share one on each rank.
struct AdapterParameters {
  std::int64_t dense = 0, experts = 0;
};
AdapterParameters adapter_parameters(const LayerSizes& s, bool has_experts);

}  // namespace orrery
