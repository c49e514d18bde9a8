#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/enum_words.hpp"
#include "sim/measurements/kernel_tables.hpp"

namespace orrery {

/// C[m,n] = A[m,k] B[k,n]
struct GemmProduct {
  std::int64_t m = 0, n = 0, k = 0;
};

/// The formula's figures of a GPU, per microsecond.
struct GemmMachine {
  double peak = 0.0;       ///< flop
  double bandwidth = 0.0;  ///< bytes
  double multiprocessors = 0.0;
};

/// The reference figures of a table, with the peak of `dtype`.
GemmMachine gemm_machine(const MeasuredGpu& measured, Dtype dtype);

double gemm_flop(std::span<const GemmProduct> products);
/// Bytes of HBM traffic: each operand read once, each result written once (or not: `results`).
double gemm_bytes(std::span<const GemmProduct> products, Dtype dtype, bool results = true);

/// Ratio of the time of the benchmark's kernel to that at its first clock: a few runs of a long one
/// last until the power limit acts, from about 6 ms of ideal time on.
double gemm_throttle(const GemmBase& base, const GemmMachine& machine,
                     std::span<const GemmProduct> products);

/// Microseconds of one kernel that computes all `products`, by the formula of
/// docs/explanation/kernels.md: all their tiles run in waves over the multiprocessors. fp8
/// quantises the A's if `cast`. `clock` is the multiprocessors' clock over that of the
/// measurements; memory keeps its own. Only at 1 do long kernels lower it.
double gemm_formula_us(const GemmBase& base, const GemmMachine& machine, Dtype dtype,
                       std::span<const GemmProduct> products, bool cast, double clock = 1.0,
                       bool results = true);

/// A linear layer's three matrix products; each has its own (m, n, k), see cost's op lists.
enum class GemmPass { forward, dgrad, wgrad };
template <>
inline const std::vector<std::string> enum_words<GemmPass>{"forward", "dgrad", "wgrad"};

/// One linear layer of several experts, y = x W^T with W[out,in], one product for each expert in
/// one kernel. Routing decides which rows of x an expert gets.
struct GroupedGemm {
  GemmPass pass = GemmPass::forward;
  std::int64_t out = 0, in = 0;
  /// Bytes per element to read and write back the main gradient, for wgrad: fp32 8, 16 bits 4; 0:
  /// the product is written as it is.
  double accumulate = 0.0;
  bool together = false;     ///< One kernel for all experts, on any GPU.
  bool sixteen_bit = false;  ///< In bf16, if the plan's format is narrower.
};

/// The products of `layer` if expert e has `tokens[e]`. Experts without tokens have none.
std::vector<GemmProduct> products_of(const GroupedGemm& layer,
                                     std::span<const std::int64_t> tokens);
/// The same in `products`, whose memory is reused by many calls.
void products_of(const GroupedGemm& layer, std::span<const std::int64_t> tokens,
                 std::vector<GemmProduct>& products);

/// Distributes `tokens` over `experts` as evenly as possible: the first ones have one more.
std::vector<std::int64_t> even_tokens(std::int64_t tokens, std::int64_t experts);

}  // namespace orrery
