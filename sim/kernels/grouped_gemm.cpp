#include "sim/kernels/grouped_gemm.hpp"

#include <cassert>

namespace orrery {

std::vector<GemmProduct> products_of(const GroupedGemm& layer,
                                     std::span<const std::int64_t> tokens) {
  std::vector<GemmProduct> products;
  products_of(layer, tokens, products);
  return products;
}

void products_of(const GroupedGemm& layer, std::span<const std::int64_t> tokens,
                 std::vector<GemmProduct>& products) {
  products.clear();
  products.reserve(tokens.size());
  for (const std::int64_t rows : tokens) {
    assert(rows >= 0);
    if (rows == 0) continue;
    switch (layer.pass) {
      case GemmPass::forward:
        products.push_back({rows, layer.out, layer.in});
        break;
      case GemmPass::dgrad:
        products.push_back({rows, layer.in, layer.out});
        break;
      case GemmPass::wgrad:
        products.push_back({layer.out, layer.in, rows});
        break;
    }
  }
}

std::vector<std::int64_t> even_tokens(std::int64_t tokens, std::int64_t experts) {
  assert(tokens >= 0 && experts > 0);
  std::vector<std::int64_t> each(static_cast<std::size_t>(experts), tokens / experts);
  for (std::int64_t i = 0; i < tokens % experts; ++i) ++each[static_cast<std::size_t>(i)];
  return each;
}

}  // namespace orrery
