#pragma once

#include <optional>

#include "sim/layers/layer_parts.hpp"

namespace orrery {

// Operations between the products of a layer. Each is one kernel, or several if the software runs
// it kernel by kernel (Software::eager_kernels), as PyTorch does unless it compiles.

/// A norm over `elements`, forward or backward.
Op norm_op(const LayerSizes& s, std::string_view name, double elements, bool backward);
/// Rotary positions of `elements` of queries and keys, in one direction.
Op rotary_op(const LayerSizes& s, std::string_view name, double elements, bool backward);
/// The activation between two products of an MLP; `elements` counts its output.
Op activation_op(const LayerSizes& s, std::string_view name, double elements, bool backward);

/// Additional bytes that are kept for the backward pass, compared with one fused kernel: per
/// element of a norm's tensor, and of a gated activation's output.
double kept_by_norm(const Scenario& scenario, const Model& layer);
double kept_by_activation(const Scenario& scenario, const Model& layer);

/// The least memory traffic of an op: every operand is read once and every result written once. It
/// is 0 for a collective.
///
/// gemm      A, B and C; narrow operands, and a result in 16 bits. (m, n, k) in bf16: 2 (mk + kn +
///           mn)
/// grouped   the same of each expert that has rows; a weight gradient that is added to its main
///           gradient reads and writes that in place of a result.
/// attention queries, keys, values and the output; backward the gradients of all four as well,
///           twice as much. Scores stay on the chip. (Dao et al., arXiv 2205.14135; the sums of a
///           row, 4 bytes for each of its 4 d or 8 d, are left out.)
/// memory, batched_gemm   their own bytes, which alone determine their price.
Bytes traffic(const Op& op, Dtype dtype);

/// The format of an op's matrix products; empty if it has none.
std::optional<Dtype> multiplies_in(const Op& op, Dtype dtype);

/// Operations of a streaming kernel: each sum, product, comparison and elementary function counts
/// one, as vector units execute them, however many instructions an exponential is. Empty for
/// unknown names.
///
/// an element of   forward  backward
///   RMS norm            4         9    squared, summed, x 1/rms, x weight
///   layer norm          7        12    ... mean summed and subtracted, + bias
///   positions           3         3    x cos, rotated x sin, their sum
///   gated activation    5        11    exp, 1 +, x / , x the other half
///   GELU                9        16    tanh(c (x + a x^3)): Hendrycks and Gimpel, arXiv 1606.08415
///   softmax             6         5    scale, maximum, subtracted, exp, summed, divided
///   cross-entropy       4         4    maximum, subtracted, exp, summed; exp, /, - 1 hot, x scale
///   dropout             2         2    compared, scaled
///   residual            1         1    summed; with dropout both
///   sums, main gradient 1
///   quantised           3              absolute, maximum, scaled
std::optional<Flop> vector_flop(const Op& op, const LayerSizes& sizes);

/// Operations of Adam with weight decay per parameter: both moments (2 products and a sum; one
/// product more), their two corrections, a root, + epsilon, the quotient, decay (a product and a
/// sum), x rate and the difference (Kingma and Ba, arXiv 1412.6980, algorithm 1; Loshchilov and
/// Hutter, 1711.05101).
inline constexpr double adam_flop = 3 + 4 + 2 + 2 + 1 + 2 + 2;

}  // namespace orrery
