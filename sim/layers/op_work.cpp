#include "sim/layers/op_work.hpp"

#include <map>
#include <string>

#include "sim/layers/eager_kernels.hpp"

namespace orrery {
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

bool multiplies_in_8_bits(const Op& op) {
  return op.attention_kernel == AttentionKernel::cudnn_fp8 ||
         op.attention_kernel == AttentionKernel::cudnn_mxfp8;
}

// Operations an element, and bytes that pass for it.
struct Each {
  double flop = 0.0;
  double bytes = 0.0;
};

bool ends_with(std::string_view text, std::string_view end) { return text.ends_with(end); }

Each norm(const Op& op, const LayerSizes& s, bool backward) {
  const bool rms = s.model.norm == NormKind::rms;
  const double flop = backward ? (rms ? 9.0 : 12.0) : (rms ? 4.0 : 7.0);
  // Norms of latents are one kernel, whatever those of the hidden channels are.
  const bool latent = op.name.starts_with("q_norm") || op.name.starts_with("kv_norm");
  return {flop, latent ? (backward ? 4.0 : 2.0) * s.element
                       : norm_op(s, op.name, 1.0, backward).bytes.si()};
}

Each activation(const Op& op, const LayerSizes& s, bool backward) {
  const double flop = s.model.gated ? (backward ? 11.0 : 5.0) : (backward ? 16.0 : 9.0);
  // Experts' is one kernel, which reads and writes whole rows.
  const double inputs = s.model.gated ? 2.0 : 1.0;
  if (op.kernels == 1) return {flop, s.element * (backward ? 2.0 * inputs + 1.0 : inputs + 1.0)};
  return {flop, activation_op(s, op.name, 1.0, backward).bytes.si()};
}

double quantise_bytes(const LayerSizes& s) {
  double bytes = 0.0;
  for (const Op& op : quantise(s, 1.0)) bytes += op.bytes.si();
  return bytes;
}

// What has no operations: tokens and tensors that are moved, looked up, ordered or kept.
bool only_moves(std::string_view name) {
  for (const char* mover :
       {"permute", "unpermute", "sort_rows", "unsort_rows", "pad_rows", "unpad_rows", "stash_rows",
        "unstash_rows", "transpose", "embedding", "join_inputs", "router_map"})
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
  if (name == "router_softmax")
    return backward ? Each{5.0, 8.0 + element} : Each{6.0, 4.0 + element};
  if (name == "router_top_k") return Each{1.0, 4.0};
  if (name == "router_counts") return Each{1.0, 1.0};
  if (name == "clamp")  // Two limits of one half, one of the other.
    return Each{3.0, backward ? 11.0 * element + 8.0 : 8.0 * element};
  if (name == "expert_bias")
    return Each{2.0, backward ? 32.0 + 4.0 * element : 24.0 + 2.0 * element};
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
      // attention_bytes() is of 16 bits.
      return Bytes{(op.backward ? 2.0 : 1.0) * (unquantised_bytes(dtype) / 2.0) *
                   attention_bytes(op.attention(), 1.0, 1.0)};
    case Op::Kind::batched_gemm:
    case Op::Kind::memory:
      return op.bytes;
    case Op::Kind::collective:
      break;
  }
  return Bytes{};
}

std::optional<Dtype> multiplies_in(const Op& op, Dtype dtype) {
  const Dtype unquantised = is_narrow(dtype) ? Dtype::bf16 : dtype;
  switch (op.kind) {
    case Op::Kind::gemm:
      return op.sixteen_bit ? unquantised : dtype;
    case Op::Kind::grouped_gemm:
      return dtype;
    case Op::Kind::attention:
      return multiplies_in_8_bits(op) ? dtype : unquantised;
    case Op::Kind::batched_gemm:
      return unquantised;
    case Op::Kind::memory:
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
