#include "sim/cost/operations/eager_kernels.hpp"

namespace orrery {
namespace {

// Bytes that kernels of 16-bit tensors read and write for an element, and how many they are.
struct Traffic {
  double bytes;
  int kernels;
};

// x.float() (2+4), squared (4+4), its mean (4), x times its inverse root (4+4), cast (4+2), times
// the weight (2+2).
constexpr Traffic eager_norm_forward{6 + 8 + 4 + 8 + 6 + 4, 8};
// Times the weight (2+2), its gradient (2+2+2, summed 2), cast (2+4), the product's two gradients
// (4+4; 4+4+4, summed 4), the square's (x copied 4+4, doubled 4+4, times the gradient 4+4), their
// sum (4+4+4), cast (4+2).
constexpr Traffic eager_norm_backward{4 + 8 + 6 + 24 + 24 + 12 + 6, 14};
// t cos (2+2), half of t negated (1+1) and joined to the other (2+2), times sin (2+2), their sum
// (2+2+2), joined to the part without positions (2+2).
constexpr Traffic eager_rotary_forward{4 + 2 + 4 + 4 + 6 + 4, 6};
// Times cos (2+2), times sin (2+2), half of it negated (1+1) and joined (2+2), their sum (2+2+2).
constexpr Traffic eager_rotary_backward{4 + 4 + 2 + 4 + 6, 5};
// silu of one half (2+2), times the other (2+2+2).
constexpr Traffic eager_gated_forward{4 + 6, 2};
// The product's two gradients (2+2+2 each), silu's (2+2+2), both halves joined (4+4).
constexpr Traffic eager_gated_backward{6 + 6 + 6 + 8, 4};

Op several(std::string_view name, Traffic traffic, double elements) {
  Op op = memory(name, traffic.bytes * elements);
  op.kernels = traffic.kernels;
  return op;
}

bool eager_norm(const Model& model, const Software& software) {
  return software.eager_kernels.rms_norm && model.norm == NormKind::rms;
}

}  // namespace

Op norm_op(const LayerSizes& s, std::string_view name, double elements, bool backward) {
  if (eager_norm(s.model, s.software))
    return several(name, backward ? eager_norm_backward : eager_norm_forward, elements);
  // Tensor in and out; backward one more pass for the gradients of scale and bias.
  return backward ? memory(name, 8.0 * elements, s.software.norm_backward_efficiency)
                  : memory(name, 4.0 * elements, s.software.norm_forward_efficiency);
}

Op rotary_op(const LayerSizes& s, std::string_view name, double elements, bool backward) {
  if (s.software.eager_kernels.rotary)
    return several(name, backward ? eager_rotary_backward : eager_rotary_forward, elements);
  return memory(name, 4.0 * elements);
}

Op activation_op(const LayerSizes& s, std::string_view name, double elements, bool backward) {
  if (s.model.gated && s.software.eager_kernels.gated_activation)
    return several(name, backward ? eager_gated_backward : eager_gated_forward, elements);
  const double inputs = s.model.gated ? 2.0 : 1.0;
  return memory(name, activation_bytes * (backward ? 2.0 * inputs + 1.0 : inputs + 1.0) * elements);
}

// x in fp32 in place of x, and the normalised x in 16 bits, which the weight's gradient needs.
double kept_by_norm(const Scenario& s) { return eager_norm(s.model, s.software) ? 4.0 : 0.0; }

// silu's output, which the other half's gradient needs.
double kept_by_activation(const Scenario& s) {
  return s.model.gated && s.software.eager_kernels.gated_activation ? 2.0 : 0.0;
}

}  // namespace orrery
