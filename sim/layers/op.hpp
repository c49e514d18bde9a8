#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/cluster/rank_groups.hpp"
#include "sim/core/units.hpp"
#include "sim/kernels/attention_time.hpp"
#include "sim/kernels/gemm_time.hpp"
#include "sim/kernels/scan_time.hpp"
#include "sim/measurements/collective_curves.hpp"
#include "sim/measurements/price_errors.hpp"

namespace orrery {

/// Work of PyTorch's kernels whose operands are broadcast or strided, so that each thread computes
/// the address of every element and loads them one by one. Instructions bound them, not memory.
struct IndexedWork {
  double elements = 0.0;  ///< Elements written by all such kernels together.
  Bytes bytes;            ///< Their HBM traffic.
};

/// One GPU kernel, or one collective of a rank's group. The members in use depend on `kind`.
struct Op {
  enum class Kind { gemm, grouped_gemm, batched_gemm, attention, scan, memory, wait, collective };

  Kind kind = Kind::memory;
  std::string_view name;  ///< Static text: "qkv", "norm", ...

  GemmPass pass = GemmPass::forward;  ///< gemm, and kernels that belong to a weight gradient
  std::int64_t m = 0, n = 0, k = 0;   ///< gemm, batched_gemm: C[m,n] = A[m,k] B[k,n]
  /// gemm, grouped_gemm: in 16 bits, regardless of the plan's format.
  bool sixteen_bit = false;
  /// grouped_gemm: rows of each expert; n and k are those of its forward product.
  std::vector<std::int64_t> rows;
  double accumulate = 0.0;  ///< grouped_gemm, wgrad: bytes an element of the main gradient.
  std::int64_t batch = 0;   ///< batched_gemm: how many; attention, scan: sequences
  std::int64_t queries = 0, keys = 0;    ///< attention: tokens of each sequence; scan: queries
  std::int64_t heads = 0, kv_heads = 0;  ///< attention, on this rank
  std::int64_t head_dim = 0;             ///< attention
  bool causal = true;                    ///< attention: the last query sees all keys
  std::int64_t window = 0;               ///< attention, causal: only the last `window` keys; 0: all
  bool backward = false;                 ///< attention, scan
  Scan scan;                             ///< scan, on this rank
  /// attention: share of the forward flop in queries x keys; the rest is in values.
  double key_share = 0.5;
  AttentionKernel attention_kernel = AttentionKernel::of_tables;
  Dtype attention_format = Dtype::bf16;  ///< AttentionShape::format
  int kernels = 1;                       ///< memory: number that share its traffic
  double efficiency = 1.0;  ///< memory: of the rate of plain copies; gemm: of its table's.
  Bytes bytes;              ///< memory, batched_gemm: HBM traffic. collective: the whole tensor.
  IndexedWork indexed;      ///< memory: the part of its traffic in such kernels.
  /// wait: the GPU is idle while its host reads a value from it and launches what follows.
  Seconds idle;
  CollectiveKind collective = CollectiveKind::all_reduce;
  GroupKind group = GroupKind::tensor;  ///< collective: the group that takes part
  /// collective: this share of it overlaps with the next op, the rest follows that op.
  double hidden = 0.0;

  Flop flop() const;
  AttentionShape attention() const {
    return {batch,           queries, keys,      heads,  kv_heads,
            head_dim,        causal,  key_share, window, attention_kernel,
            attention_format};
  }
  ScanShape scanned() const { return {scan, batch, queries}; }
};

using Ops = std::vector<Op>;

/// A whole backward pass, its part that sends gradients to the previous stage, or that of the
/// weights.
enum class BackwardPart { whole, inputs, weights };
/// The ops of a backward pass that belong to a part: products of GemmPass::wgrad with their
/// surroundings, or all others. A collective that was hidden behind a weight gradient is exposed.
Ops part_of(Ops backward, BackwardPart part);

Op gemm(std::string_view name, GemmPass pass, std::int64_t m, std::int64_t n, std::int64_t k);
/// The products of experts with `rows` tokens each; `n` and `k` are those of the forward product
/// C[r,n] = A[r,k] B[k,n].
Op grouped_gemm(std::string_view name, GemmPass pass, std::vector<std::int64_t> rows,
                std::int64_t n, std::int64_t k, double accumulate = 0.0);
Op memory(std::string_view name, double bytes, double efficiency = 1.0);
Op wait_for_host(std::string_view name, Seconds idle);
Op collective(std::string_view name, CollectiveKind kind, double bytes, double hidden = 0.0,
              GroupKind group = GroupKind::tensor);

/// The kind of a kernel's price, which determines its error. Collectives have TimeByPrice's.
PriceKind price_kind(const Op& kernel);

}  // namespace orrery
