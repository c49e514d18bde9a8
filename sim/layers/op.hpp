#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/cluster/rank_groups.hpp"
#include "sim/core/units.hpp"
#include "sim/kernels/attention_time.hpp"
#include "sim/kernels/gemm_time.hpp"
#include "sim/measurements/collective_curves.hpp"
#include "sim/measurements/price_errors.hpp"

namespace orrery {

/// Work of PyTorch's kernels whose operands are broadcast or strided, so that each thread works out
/// the address of every element and loads them one by one. Instructions bound them, not memory.
struct IndexedWork {
  double elements = 0.0;  ///< Written, of all such kernels together.
  Bytes bytes;            ///< Their HBM traffic.
};

/// One GPU kernel, or one collective of one of the rank's groups, on one rank. Which members mean
/// something depends on `kind`.
struct Op {
  enum class Kind { gemm, grouped_gemm, batched_gemm, attention, memory, collective };

  Kind kind = Kind::memory;
  std::string_view name;  ///< Static text: "qkv", "norm", ...

  GemmPass pass = GemmPass::forward;  ///< gemm, and what belongs to a weight gradient
  std::int64_t m = 0, n = 0, k = 0;   ///< gemm, batched_gemm: C[m,n] = A[m,k] B[k,n]
  bool sixteen_bit = false;           ///< gemm: in 16 bits, whatever the plan multiplies in.
  /// grouped_gemm: rows of each expert; n and k are those of its forward product.
  std::vector<std::int64_t> rows;
  double accumulate = 0.0;  ///< grouped_gemm, wgrad: bytes an element of the main gradient.
  std::int64_t batch = 0;   ///< batched_gemm: how many; attention: sequences
  std::int64_t queries = 0, keys = 0;    ///< attention: tokens of each sequence
  std::int64_t heads = 0, kv_heads = 0;  ///< attention, on this rank
  std::int64_t head_dim = 0;             ///< attention
  bool causal = true;                    ///< attention: the last query sees all keys
  std::int64_t window = 0;               ///< attention, causal: of these the last so many; 0: all
  bool backward = false;                 ///< attention
  /// attention: of the forward flop, what queries have with keys; the rest is values'.
  double key_share = 0.5;
  AttentionKernel attention_kernel = AttentionKernel::of_tables;
  Dtype attention_format = Dtype::bf16;  ///< AttentionShape::format
  int kernels = 1;                       ///< memory: into which its traffic is divided.
  double efficiency = 1.0;  ///< memory: of the rate that plain copies reach; gemm: of its table's.
  Bytes bytes;              ///< memory, batched_gemm: HBM traffic. collective: the whole tensor.
  IndexedWork indexed;      ///< memory: what part of it such kernels do.
  CollectiveKind collective = CollectiveKind::all_reduce;
  GroupKind group = GroupKind::tensor;  ///< collective: who does it together
  /// collective: this share of it runs beside the next op, the rest after that op (0: all of it
  /// where it stands).
  double hidden = 0.0;

  Flop flop() const;
  AttentionShape attention() const {
    return {batch,           queries, keys,      heads,  kv_heads,
            head_dim,        causal,  key_share, window, attention_kernel,
            attention_format};
  }
};

using Ops = std::vector<Op>;

/// A backward pass, what of it brings gradients to the stage before, or the weights' gradients.
enum class BackwardPart { whole, inputs, weights };
/// The ops of a backward pass that belong to a part: products of GemmPass::wgrad and what goes with
/// them, or all others. A collective that was hidden behind a weight gradient is left bare.
Ops part_of(Ops backward, BackwardPart part);

Op gemm(std::string_view name, GemmPass pass, std::int64_t m, std::int64_t n, std::int64_t k);
/// The products of experts with `rows` tokens each. `n`, `k`: of the forward product C[r,n] =
/// A[r,k] B[k,n].
Op grouped_gemm(std::string_view name, GemmPass pass, std::vector<std::int64_t> rows,
                std::int64_t n, std::int64_t k, double accumulate = 0.0);
Op memory(std::string_view name, double bytes, double efficiency = 1.0);
Op collective(std::string_view name, CollectiveKind kind, double bytes, double hidden = 0.0,
              GroupKind group = GroupKind::tensor);

/// Which error the price of a kernel has. Those of a collective are TimeByPrice's.
PriceKind price_kind(const Op& kernel);

}  // namespace orrery
