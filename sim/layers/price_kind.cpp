#include "sim/layers/price_kind.hpp"

namespace orrery {

PriceKind price_kind(const Op& kernel) {
  switch (kernel.kind) {
    case Op::Kind::gemm:
      return PriceKind::gemm;
    case Op::Kind::grouped_gemm:
      return PriceKind::grouped_gemm;
    case Op::Kind::attention:
      return PriceKind::attention;
    case Op::Kind::batched_gemm:
      return PriceKind::batched_gemm;
    case Op::Kind::memory:
    case Op::Kind::collective:
      break;
  }
  return PriceKind::memory;
}

}  // namespace orrery
