#include "sim/layers/op.hpp"

#include <algorithm>

namespace orrery {

Flop Op::flop() const {
  const auto product = [](auto... factors) { return (static_cast<double>(factors) * ...); };
  switch (kind) {
    case Kind::gemm:
      return Flop{2.0 * product(m, n, k)};
    case Kind::grouped_gemm: {
      double sum = 0.0;
      for (std::int64_t count : rows) sum += static_cast<double>(count);
      return Flop{2.0 * sum * product(n, k)};
    }
    case Kind::batched_gemm:
      return Flop{2.0 * product(batch, m, n, k)};
    case Kind::attention:
      // 4 flop a score and channel (scores and values), of the keys that the mask leaves. The
      // backward pass has five products where the forward has two (Dao et al., arXiv
      // 2205.14135): three of the width of keys and two of that of values.
      return Flop{(backward ? 4.0 + 2.0 * key_share : 2.0) *
                  product(batch, heads, queries, attention_keys(attention()), head_dim)};
    case Kind::scan:
      return scan_flop(scanned(), backward);
    case Kind::memory:
    case Kind::wait:
    case Kind::collective:
      return Flop{0.0};
  }
  return Flop{0.0};
}

Op gemm(std::string_view name, GemmPass pass, std::int64_t m, std::int64_t n, std::int64_t k) {
  Op op;
  op.kind = Op::Kind::gemm;
  op.name = name;
  op.pass = pass;
  op.m = m, op.n = n, op.k = k;
  return op;
}

Op grouped_gemm(std::string_view name, GemmPass pass, std::vector<std::int64_t> rows,
                std::int64_t n, std::int64_t k, double accumulate) {
  Op op;
  op.kind = Op::Kind::grouped_gemm;
  op.name = name;
  op.pass = pass;
  op.n = n, op.k = k;
  op.rows = std::move(rows);
  op.accumulate = accumulate;
  return op;
}

Op memory(std::string_view name, double bytes, double efficiency) {
  Op op;
  op.kind = Op::Kind::memory;
  op.name = name;
  op.bytes = Bytes{bytes};
  op.efficiency = efficiency;
  return op;
}

Op wait_for_host(std::string_view name, Seconds idle) {
  Op op;
  op.kind = Op::Kind::wait;
  op.name = name;
  op.idle = idle;
  op.kernels = 0;
  return op;
}

Op collective(std::string_view name, CollectiveKind kind, double bytes, double hidden,
              GroupKind group) {
  Op op;
  op.kind = Op::Kind::collective;
  op.name = name;
  op.collective = kind;
  op.bytes = Bytes{bytes};
  op.hidden = hidden;
  op.group = group;
  return op;
}

Ops part_of(Ops backward, BackwardPart part) {
  if (part == BackwardPart::whole) return backward;
  Ops ops;
  bool bare = false;  // The next kernel that this collective could hide behind is not in the part.
  for (auto op = backward.rbegin(); op != backward.rend(); ++op) {
    const bool is_collective = op->kind == Op::Kind::collective;
    const bool of_weights = !is_collective && op->pass == GemmPass::wgrad;
    if (!is_collective) bare = of_weights;
    if (of_weights != (part == BackwardPart::weights)) continue;
    ops.push_back(std::move(*op));
    if (is_collective && bare) ops.back().hidden = 0.0;
  }
  std::reverse(ops.begin(), ops.end());
  return ops;
}

PriceKind price_kind(const Op& kernel) {
  switch (kernel.kind) {
    case Op::Kind::gemm:
      return PriceKind::gemm;
    case Op::Kind::grouped_gemm:
      return PriceKind::grouped_gemm;
    case Op::Kind::attention:
    case Op::Kind::scan:
      return PriceKind::attention;
    case Op::Kind::batched_gemm:
      return PriceKind::batched_gemm;
    case Op::Kind::wait:
      return PriceKind::host;
    case Op::Kind::memory:
    case Op::Kind::collective:
      break;
  }
  return PriceKind::memory;
}

}  // namespace orrery
