#include "sim/kernels/gemm_formula.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

namespace orrery {
namespace {

// The usual output tiles of cuBLAS and CUTLASS; more kinds do not help
// (docs/explanation/kernels.md).
constexpr std::array<std::array<double, 2>, 4> tile_sizes{
    {{256, 128}, {128, 256}, {128, 128}, {64, 64}}};

// All tiles run in waves, each as long as an average tile.
double compute_us(const GemmBase& base, const GemmMachine& machine,
                  std::span<const GemmProduct> products, double a, double b) {
  const double peak_per_sm = machine.peak / machine.multiprocessors;
  const double overhead = base.tile_overhead.si() * 1e6;
  double tiles = 0.0, work = 0.0;
  for (const GemmProduct& product : products) {
    const double here = std::ceil(static_cast<double>(product.m) / a) *
                        std::ceil(static_cast<double>(product.n) / b);
    const double tile =
        2.0 * a * b * static_cast<double>(product.k) / (base.compute_efficiency * peak_per_sm);
    tiles += here;
    work += here * (tile + overhead);
  }
  const double waves = tiles / machine.multiprocessors;
  const double counted = base.hard * std::ceil(waves) + (1.0 - base.hard) * std::max(waves, 1.0);
  return counted * (work / tiles);
}

}  // namespace

GemmMachine gemm_machine(const MeasuredGpu& measured, Dtype dtype) {
  const FlopPerSecond peak = measured.*facts(dtype).peak;
  return {peak.si() * 1e-6, measured.memory_bandwidth.si() * 1e-6,
          static_cast<double>(measured.multiprocessors)};
}

double gemm_flop(std::span<const GemmProduct> products) {
  double flop = 0.0;
  for (const auto& [m, n, k] : products)
    flop += 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  return flop;
}

double gemm_throttle(const GemmBase& base, const GemmMachine& machine,
                     std::span<const GemmProduct> products) {
  constexpr double throttle_us = 6000.0;  // docs/explanation/kernels.md, GEMM.
  const double share = throttle_us * machine.peak / gemm_flop(products);
  return 1.0 + base.throttle / (1.0 + share * share * share);
}

double gemm_bytes(std::span<const GemmProduct> products, Dtype dtype, bool results) {
  // The fitted constants of each table include the format's scales.
  const double element = element_bytes(measured_as(dtype));
  // Products of narrow formats are written as bf16.
  const double result = !results ? 0.0 : unquantised_bytes(dtype);
  double bytes = 0.0;
  for (const auto& [m, n, k] : products)
    bytes += element * static_cast<double>(k) * static_cast<double>(m + n) +
             result * static_cast<double>(m) * static_cast<double>(n);
  return bytes;
}

double gemm_formula_us(const GemmBase& base, const GemmMachine& machine, Dtype dtype,
                       std::span<const GemmProduct> products, bool cast, double clock,
                       bool results) {
  double compute = std::numeric_limits<double>::infinity();
  for (const auto& [a, b] : tile_sizes)
    compute = std::min(compute, compute_us(base, machine, products, a, b));
  compute /= clock;
  const double memory =
      gemm_bytes(products, dtype, results) / (base.memory_efficiency * machine.bandwidth);
  // A norm instead of a maximum: near the ridge both limits add to the time.
  double core = std::sqrt(std::sqrt(std::pow(compute, 4) + std::pow(memory, 4)));
  // A training step has the clock `clock`, regardless of the length of its kernels.
  if (clock == 1.0) core *= gemm_throttle(base, machine, products);
  double time = core + base.overhead.si() * 1e6;
  if (base.casts() && cast) {  // Reads 2 bytes and writes 1 for every element of A.
    double moved = 0.0;
    for (const auto& [m, n, k] : products)
      moved += 3.0 * static_cast<double>(m) * static_cast<double>(k);
    time += base.cast_overhead.si() * 1e6 + moved / (base.cast_efficiency * machine.bandwidth);
  }
  return time;
}

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
