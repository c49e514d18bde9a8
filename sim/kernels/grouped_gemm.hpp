#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/kernels/gemm_formula.hpp"

namespace orrery {

/// A linear layer's three matrix products; each has its own (m, n, k), see cost's op lists.
enum class GemmPass { forward, dgrad, wgrad };

/// One linear layer of several experts, y = x W^T with W[out,in], one product for each expert in
/// one kernel. Which rows of x an expert gets is routing's.
struct GroupedGemm {
  GemmPass pass = GemmPass::forward;
  std::int64_t out = 0, in = 0;
  /// wgrad: bytes with which each element of the main gradient is read and written back; 0: the
  /// product is written as it is. fp32: 8, 16 bits: 4.
  double accumulate = 0.0;
  bool together = false;  ///< One kernel for all experts, whatever the GPU.
};

/// The products of `layer` where expert e has `tokens[e]`. Experts without tokens have none.
std::vector<GemmProduct> products_of(const GroupedGemm& layer,
                                     std::span<const std::int64_t> tokens);
/// The same, in place of what `products` held: one list serves many calls.
void products_of(const GroupedGemm& layer, std::span<const std::int64_t> tokens,
                 std::vector<GemmProduct>& products);

/// `tokens` over `experts` as evenly as whole tokens allow: the first ones have one more.
std::vector<std::int64_t> even_tokens(std::int64_t tokens, std::int64_t experts);

}  // namespace orrery
