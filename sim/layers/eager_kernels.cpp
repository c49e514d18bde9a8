#include "sim/layers/eager_kernels.hpp"

namespace orrery {
namespace {

// Bytes that kernels read and write for an element, and how many they are. Of these, elements and
// bytes of those with broadcast or strided operands (IndexedWork), marked * below.
struct Traffic {
  double bytes;
  int kernels;
  double indexed, indexed_bytes;
};
// Of tensors in 16 bits, and in 32.
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

// x in fp32 in place of x, and the normalised x as x is, which the weight's gradient needs: in 32
// bits that alone.
double kept_by_norm(const Scenario& s) { return eager_norm(s.model, s.software) ? 4.0 : 0.0; }

// silu's output, which the other half's gradient needs.
double kept_by_activation(const Scenario& s) {
  return s.model.gated && s.software.eager_kernels.gated_activation
             ? unquantised_bytes(s.plan.dtype)
             : 0.0;
}

}  // namespace orrery
