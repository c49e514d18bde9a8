#include "sim/layers/op_work.hpp"

#include <map>
#include <string>

namespace orrery {
namespace {

// Bytes that kernels read and write for an element, and their number; then elements and bytes of
// those with broadcast or strided operands (IndexedWork), marked * below.
struct Traffic {
  double bytes;
  int kernels;
  double indexed, indexed_bytes;
};
// Traffic for tensors in 16 bits, and in 32.
struct Eager {
  Traffic narrow, wide;
};

// x.float() (2+4), squared (4+4), its mean (4), x times its inverse root (4+4 *), cast (4+2), times
// the weight (2+2 *). In 32 bits there is nothing to cast, and all have 4 bytes.
constexpr Eager eager_norm_forward{{6 + 8 + 4 + 8 + 6 + 4, 8, 2, 8 + 4},
                                   {8 + 4 + 8 + 8, 6, 2, 8 + 8}};
// Times the weight (2+2 *), its gradient (2+2+2, summed 2), cast (2+4), the product's two gradients
// (4+4 *; 4+4+4, summed 4), the square's (x copied 4+4, doubled 4+4, times the gradient 4+4 *),
// their sum (4+4+4), cast (4+2).
constexpr Eager eager_norm_backward{{4 + 8 + 6 + 24 + 24 + 12 + 6, 14, 3, 4 + 8 + 8},
                                    {8 + 16 + 24 + 24 + 12, 12, 3, 8 + 8 + 8}};
// t cos (2+2 *), half of t negated (1+1 *) and joined to the other (2+2), times sin (2+2 *), their
// sum (2+2+2), joined to the part without positions (2+2).
constexpr Eager eager_rotary_forward{{4 + 2 + 4 + 4 + 6 + 4, 6, 2.5, 4 + 2 + 4},
                                     {2 * 24, 6, 2.5, 2 * 10}};
// Times cos (2+2 *), times sin (2+2 *), half of it negated (1+1 *) and joined (2+2), their sum
// (2+2+2).
constexpr Eager eager_rotary_backward{{4 + 4 + 2 + 4 + 6, 5, 2.5, 4 + 4 + 2},
                                      {2 * 20, 5, 2.5, 2 * 10}};
// silu of one half (2+2), times the other (2+2+2). Halves of one product are strided.
constexpr Eager eager_gated_forward{{4 + 6, 2, 2, 4 + 6}, {2 * 10, 2, 2, 2 * 10}};
// The product's two gradients (2+2+2 each, one of them with a half), silu's (2+2+2, with a half),
// both halves joined (4+4).
constexpr Eager eager_gated_backward{{6 + 6 + 6 + 8, 4, 2, 6 + 6}, {2 * 26, 4, 2, 2 * 12}};

Op several(const LayerSizes& s, std::string_view name, const Eager& eager, double elements) {
  const Traffic& traffic = is_wide(s.plan.dtype) ? eager.wide : eager.narrow;
  Op op = memory(name, traffic.bytes * elements);
  op.kernels = traffic.kernels;
  op.indexed = {traffic.indexed * elements, Bytes{traffic.indexed_bytes * elements}};
  return op;
}

bool eager_norm(const Model& model, const Software& software) {
  return software.eager_kernels.rms_norm && model.norm == NormKind::rms;
}

}  // namespace

Op norm_op(const LayerSizes& s, std::string_view name, double elements, bool backward) {
  if (eager_norm(s.model, s.software))
    return several(s, name, backward ? eager_norm_backward : eager_norm_forward, elements);
  // Tensor in and out; backward one more pass for the gradients of scale and bias.
  return backward ? memory(name, 4.0 * s.element * elements, s.software.norm_backward_efficiency)
                  : memory(name, 2.0 * s.element * elements, s.software.norm_forward_efficiency);
}

Op rotary_op(const LayerSizes& s, std::string_view name, double elements, bool backward) {
  const EagerKernels& eager = s.software.eager_kernels;
  if (eager.rotary || (eager.scaled_rotary && s.model.scaled_rotary))
    return several(s, name, backward ? eager_rotary_backward : eager_rotary_forward, elements);
  return memory(name, 2.0 * s.element * elements);
}

Op activation_op(const LayerSizes& s, std::string_view name, double elements, bool backward) {
  if (s.model.gated && s.software.eager_kernels.gated_activation) {
    Op op = several(s, name, backward ? eager_gated_backward : eager_gated_forward, elements);
    if (!s.software.fused_projections) op.indexed = {};
    return op;
  }
  const double inputs = s.model.gated ? 2.0 : 1.0;
  return memory(name, s.element * (backward ? 2.0 * inputs + 1.0 : inputs + 1.0) * elements);
}

// The norm keeps x in fp32 in place of x, and the normalised x in its own format for the weight's
// gradient: in 32 bits only the latter is extra.
double kept_by_norm(const Scenario& s, const Model& layer) {
  return eager_norm(layer, s.software) ? 4.0 : 0.0;
}

// The output of silu, which the other half's gradient needs.
double kept_by_activation(const Scenario& s, const Model& layer) {
  return layer.gated && s.software.eager_kernels.gated_activation ? unquantised_bytes(s.plan.dtype)
                                                                  : 0.0;
}

namespace {

Bytes grouped_traffic(const Op& op, Dtype dtype) {
  const std::vector<GemmProduct> products = products_of({op.pass, op.n, op.k}, op.rows);
  const bool adds = op.pass == GemmPass::wgrad && op.accumulate > 0.0;
  double bytes = gemm_bytes(products, dtype, !adds);
  if (adds)
    for (const GemmProduct& product : products)
      bytes += op.accumulate * static_cast<double>(product.m) * static_cast<double>(product.n);
  return Bytes{bytes};
}

// Operations and bytes of one element.
struct Each {
  double flop = 0.0;
  double bytes = 0.0;
};

bool ends_with(std::string_view text, std::string_view end) { return text.ends_with(end); }

Each norm(const Op& op, const LayerSizes& s, bool backward) {
  const bool rms = s.model.norm == NormKind::rms;
  const double flop = backward ? (rms ? 9.0 : 12.0) : (rms ? 4.0 : 7.0);
  // Norms of latents are one kernel, regardless of those of the hidden channels.
  const bool latent = op.name.starts_with("q_norm") || op.name.starts_with("kv_norm");
  return {flop, latent ? (backward ? 4.0 : 2.0) * s.element
                       : norm_op(s, op.name, 1.0, backward).bytes.si()};
}

Each activation(const Op& op, const LayerSizes& s, bool backward) {
  const double flop = s.model.gated ? (backward ? 11.0 : 5.0) : (backward ? 16.0 : 9.0);
  // The activation of experts is one kernel, which reads and writes whole rows.
  const double inputs = s.model.gated ? 2.0 : 1.0;
  if (op.kernels == 1) return {flop, s.element * (backward ? 2.0 * inputs + 1.0 : inputs + 1.0)};
  return {flop, activation_op(s, op.name, 1.0, backward).bytes.si()};
}

double quantise_bytes(const LayerSizes& s) {
  double bytes = 0.0;
  for (const Op& op : quantise(s, 1.0)) bytes += op.bytes.si();
  return bytes;
}

// Kernels without operations: they move, look up, sort or keep tokens and tensors.
bool only_moves(std::string_view name) {
  for (const char* mover :
       {"permute", "unpermute", "sort_rows", "unsort_rows", "pad_rows", "unpad_rows", "stash_rows",
        "unstash_rows", "transpose", "embedding", "join_inputs", "router_map", "keys_copies"})
    if (name == mover) return true;
  return false;
}

std::optional<Each> each_of(std::string_view name, const Op& op, const LayerSizes& s,
                            bool backward) {
  const double element = s.element;
  const Software& software = s.software;
  if (ends_with(name, "norm")) return norm(op, s, backward);
  if (name == "activation" || name == "shared_activation") return activation(op, s, backward);
  if (name == "rope") return Each{3.0, rotary_op(s, op.name, 1.0, backward).bytes.si()};
  if (name == "residual") {
    if (!software.dropout) return Each{1.0, 3.0 * element};
    return Each{3.0, backward ? 6.0 * element + 1.0 : 3.0 * element + 1.0};
  }
  if (name == "softmax") return backward ? Each{5.0, 3.0 * element} : Each{6.0, 2.0 * element};
  if (name == "dropout" || name == "attention_dropout") return Each{2.0, 2.0 * element + 1.0};
  if (name == "attention_merge") return Each{3.0, 3.0 * element};
  if (ends_with(name, "sum")) return Each{1.0, 3.0 * element};
  if (name == "bias_grad") return Each{1.0, element};
  if (name == "cross_entropy")
    return Each{4.0, backward ? software.logit_backward_bytes : software.logit_forward_bytes};
  if (name == "accumulate") return Each{1.0, software.accumulate_bytes};
  if (name == "quantise") return Each{3.0, quantise_bytes(s)};
  if (name == "quantise_columns") return Each{3.0, software.fp8_scaling.columns_bytes};
  if (name == "quantise_weight")
    return Each{3.0, backward ? software.fp8_scaling.backward_weight_bytes
                              : software.fp8_scaling.forward_weight_bytes};
  if (name == "embedding" && backward) return Each{1.0, element + 8.0};
  if (name == "keys_copies" && backward) return Each{1.0, element};
  if (name == "router_softmax")
    return backward ? Each{5.0, 8.0 + element} : Each{6.0, 4.0 + element};
  if (name == "router_top_k") return Each{1.0, 4.0};
  if (name == "router_counts") return Each{1.0, 1.0};
  if (name == "clamp")  // Two limits of one half, one of the other.
    return Each{3.0, backward ? 11.0 * element + 8.0 : 8.0 * element};
  if (name == "expert_bias")
    return Each{2.0, backward ? 32.0 + 4.0 * element : 24.0 + 2.0 * element};
  if (name == "output_gate") return Each{5.0, (backward ? 5.0 : 3.0) * element};
  if (name == "gated_norm") return Each{backward ? 20.0 : 9.0, (backward ? 5.0 : 3.0) * element};
  if (name == "convolution")  // Four taps: a product and a sum each; SiLU.
    return Each{backward ? 20.0 : 12.0, (backward ? 3.0 : 2.0) * element};
  if (only_moves(name)) return Each{0.0, 1.0};
  return std::nullopt;
}

}  // namespace

Bytes traffic(const Op& op, Dtype dtype) {
  switch (op.kind) {
    case Op::Kind::gemm: {
      const GemmProduct product{op.m, op.n, op.k};
      return Bytes{gemm_bytes({&product, 1}, *multiplies_in(op, dtype))};
    }
    case Op::Kind::grouped_gemm:
      return grouped_traffic(op, dtype);
    case Op::Kind::attention:
      // The result of attention_bytes() is for 16 bits.
      return Bytes{(op.backward ? 2.0 : 1.0) * (unquantised_bytes(dtype) / 2.0) *
                   attention_bytes(op.attention(), 1.0, 1.0)};
    case Op::Kind::scan:
      return scan_bytes(op.scanned(), op.backward);
    case Op::Kind::batched_gemm:
    case Op::Kind::memory:
      return op.bytes;
    case Op::Kind::wait:
    case Op::Kind::collective:
      break;
  }
  return Bytes{};
}

std::optional<Dtype> multiplies_in(const Op& op, Dtype dtype) {
  const Dtype unquantised = is_narrow(dtype) ? Dtype::bf16 : dtype;
  switch (op.kind) {
    case Op::Kind::gemm:
    case Op::Kind::grouped_gemm:
      return op.sixteen_bit ? unquantised : dtype;
    case Op::Kind::attention:
      return is_narrow(op.attention_format) ? op.attention_format : unquantised;
    case Op::Kind::batched_gemm:
    case Op::Kind::scan:
      return unquantised;
    case Op::Kind::memory:
    case Op::Kind::wait:
    case Op::Kind::collective:
      break;
  }
  return std::nullopt;
}

std::optional<Flop> vector_flop(const Op& op, const LayerSizes& sizes) {
  if (op.kind != Op::Kind::memory) return std::nullopt;
  const bool backward = op.name.ends_with("_bwd");
  std::string_view name = op.name;
  if (backward) name.remove_suffix(std::string_view{"_bwd"}.size());
  const auto each = each_of(name, op, sizes, backward);
  if (!each) return std::nullopt;
  return each->bytes > 0.0 ? Flop{each->flop * op.bytes.si() / each->bytes} : Flop{};
}

}  // namespace orrery
