#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/layers/layer_parts.hpp"
#include "sim/profile/kernel_pricer.hpp"

namespace orrery {

// What a question means in the terms of cost/operations.

/// dispatch or combine: no kernel of the GPU by itself.
bool is_exchange(const KernelQuestion& question);

/// A layer on a GPU of its own, as the functions of cost/operations want it: RMS norm, SwiGLU.
Scenario bare_scenario(const System& system, const Software& software, Dtype dtype);

/// The op that a training step of `sizes.software` has. Not of decode, dispatch or combine.
Op op_of(const KernelQuestion& question, const LayerSizes& sizes);
Flop flop_of(const KernelQuestion& question, const Op& op, const LayerSizes& sizes);
/// Which tensors its traffic is of; empty where that says nothing more.
std::vector<TrafficPart> parts_of(const Op& op, Dtype dtype);

/// As serving_table_columns("decode_attention") names them.
std::array<std::int64_t, 6> decode_sizes(const KernelQuestion& question);

std::string sizes_text(const KernelQuestion& question);  ///< "8192 x 4096 x 4096"
std::string family_of(const KernelQuestion& question);   ///< OperationPrice::kind

}  // namespace orrery
