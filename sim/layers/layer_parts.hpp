#pragma once

#include <algorithm>
#include <vector>

#include "sim/layers/op.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// Sizes for the op lists of a kind of layer, which only those of a model with a pattern must say;
/// what lies outside of layers is the same in all. The letters are those of layer_ops.hpp.
struct LayerSizes {
  explicit LayerSizes(const Scenario& s, LayerKind kind = {}) : LayerSizes{s, s.shape_of(kind)} {
    quantises = quantises && !kind.sixteen_bit;
  }
  /// Those of `shape`, one of the scenario's.
  LayerSizes(const Scenario& s, const Model& shape)
      : model{shape},
        software{s.software},
        plan{s.plan},
        architecture{s.system.gpu.architecture},
        host_slowdown{s.system.host_slowdown},
        tokens{s.tokens_per_microbatch()},
        own_tokens{s.plan.sp ? tokens / s.plan.tp : tokens},
        hidden{model.hidden},
        heads{model.heads / s.plan.tp},
        kv_heads{std::max<std::int64_t>(1, model.kv_heads / s.plan.tp)},
        head_width{heads * value_width(model)},
        ffn{model.ffn / s.plan.tp},
        ffn_in{(model.gated ? 2 : 1) * ffn},
        vocab{s.padded_vocab / s.plan.tp},
        quantises{is_narrow(s.plan.dtype)},
        element{unquantised_bytes(s.plan.dtype)},
        tensor{static_cast<double>(tokens * hidden)},
        own_tensor{s.plan.sp ? tensor / s.plan.tp : tensor},
        arriving{arriving_share(s, model)} {}

  /// Widths of the products that read a layer's input: one, or one for each of queries, keys and
  /// values, or for both inputs of a gated MLP.
  std::vector<std::int64_t> qkv_products() const {
    const std::int64_t queries = (model.output_gate ? 2 : 1) * heads * model.head_dim;
    const std::int64_t keys = kv_heads * model.head_dim;
    const std::int64_t values = model.values_are_keys ? 0 : kv_heads * value_width(model);
    if (software.fused_projections) return {queries + keys + values};
    return values > 0 ? std::vector{queries, keys, values} : std::vector{queries, keys};
  }
  std::vector<std::int64_t> fc1_products() const {
    if (software.fused_projections || !model.gated) return {ffn_in};
    return {ffn, ffn};
  }

  double of_tokens(std::int64_t width) const { return static_cast<double>(tokens * width); }
  double of_own_tokens(std::int64_t width) const { return static_cast<double>(own_tokens * width); }
  const Model& model;
  const Software& software;
  const Plan& plan;
  Architecture architecture;
  double host_slowdown;  ///< Of times of an x86 host.
  std::int64_t tokens, own_tokens, hidden, heads, kv_heads, head_width, ffn, ffn_in, vocab;
  bool quantises;     ///< Operands of linear layers become 8 bits wide; not those of the head.
  double element;     ///< Bytes of an element of an activation or a weight.
  double tensor;      ///< T h elements.
  double own_tensor;  ///< T' h elements.
  /// Share of a rank's rows that arrive over the network: copies on arrival count as one row.
  double arriving;

 private:
  static double arriving_share(const Scenario& s, const Model& shape);
};

/// The channels of several products together.
std::int64_t sum_of(const std::vector<std::int64_t>& widths);

void append(Ops& ops, const Ops& more);
void append(Ops& ops, Ops&& more);

// Tensor-parallel collectives. `gather` precedes a column-parallel GEMM and `reduce` follows a
// row-parallel one; both carry the full tensor of T `width` activations, by default T h.
Ops gather(const LayerSizes& s, std::string_view name, double hidden, std::int64_t width = 0);
Ops reduce(const LayerSizes& s, std::string_view name, double hidden, std::int64_t width = 0);
/// The share of a sequence-parallel collective that is pipelined into its GEMM.
double pipelined(const LayerSizes& s);

/// A product of a linear layer, and the quantisation of `elements` of its operand: empty if it
/// multiplies in 16 bits.
Op product(const LayerSizes& s, std::string_view name, GemmPass pass, std::int64_t m,
           std::int64_t n, std::int64_t k);
Ops quantise(const LayerSizes& s, double elements);
/// Quantises an output's gradient, for the gradients of input and weight.
Ops quantise_gradient(const LayerSizes& s, double elements);

/// One of the layer's norms over the hidden channels.
Ops norm_forward(const LayerSizes& s);
Ops norm_backward(const LayerSizes& s);
Ops mlp_forward(const LayerSizes& s);
/// SelectiveRecompute::alternate_products up to the activation, whose output is saved.
Ops alternate_products(const LayerSizes& s);

/// A linear layer between hidden channels and `width` of this rank's, and its three products.
struct Linear {
  std::string_view name, dgrad, wgrad;
  std::int64_t width;
};
using Linears = std::vector<Linear>;
/// Column-parallel layers that read one input, which is gathered once; row-parallel ones whose
/// outputs are added up, and reduced once.
Ops column_parallel_forward(const LayerSizes& s, const Linears& of_one_input);
Ops column_parallel_backward(const LayerSizes& s, const Linears& of_one_input);
Ops row_parallel_forward(const LayerSizes& s, const Linears& summed);
Ops row_parallel_backward(const LayerSizes& s, const Linears& summed);
/// Adds a weight gradient of n x k into the main gradient.
Op accumulate(const LayerSizes& s, std::int64_t n, std::int64_t k);
/// Appends a weight's gradient of n x k and its accumulation, unless the weight is frozen.
void append_weight_gradient(const LayerSizes& s, Ops& ops, Op product, std::int64_t n,
                            std::int64_t k);

}  // namespace orrery
