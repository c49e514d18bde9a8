#pragma once

#include "sim/layers/layer_parts.hpp"

namespace orrery {

// What stands between the products of a layer and is one kernel each, or several where the
// software runs it kernel by kernel (Software::eager_kernels), as PyTorch does unless it compiles.

/// A norm over `elements`, forward or backward.
Op norm_op(const LayerSizes& s, std::string_view name, double elements, bool backward);
/// Rotary positions of so many elements of queries and keys, in one direction.
Op rotary_op(const LayerSizes& s, std::string_view name, double elements, bool backward);
/// The activation between two products of an MLP, `elements` of whose second input it writes.
Op activation_op(const LayerSizes& s, std::string_view name, double elements, bool backward);

/// Bytes that are kept for the backward pass beside what one kernel would keep: per element of a
/// norm's tensor, and of a gated activation's output.
double kept_by_norm(const Scenario& scenario);
double kept_by_activation(const Scenario& scenario);

}  // namespace orrery
