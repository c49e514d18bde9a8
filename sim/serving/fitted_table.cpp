#include "sim/serving/fitted_table.hpp"

#include <array>
#include <cmath>

namespace orrery {
namespace {

constexpr std::size_t most_sizes = 7;
constexpr double octaves_of_a_window = 4.0;
constexpr double weight_of_head_dim = 2.0;
constexpr double weight_of_layout = 0.4;
constexpr std::size_t head_dim_column = 3, window_column = 4;
constexpr std::size_t moe_tp_column = 4, moe_ep_column = 5;

struct Coordinates {
  std::array<double, most_sizes> x{};
  std::size_t count = 0;
  std::span<const double> span() const { return std::span{x}.first(count); }
};

Coordinates coordinates(const std::string& op, std::span<const std::int64_t> sizes) {
  Coordinates at;
  at.count = sizes.size();
  for (std::size_t i = 0; i < sizes.size(); ++i)
    at.x[i] = std::log2(std::max(1.0, static_cast<double>(sizes[i])));
  if (op == "decode_attention") at.x[window_column] = sizes[4] > 0 ? octaves_of_a_window : 0.0;
  if (op == "decode_attention" || op == "prefill_attention")
    at.x[head_dim_column] *= weight_of_head_dim;
  if (op == "experts") {
    const double tp = at.x[moe_tp_column], ep = at.x[moe_ep_column];
    at.x[moe_tp_column] = tp + ep;
    at.x[moe_ep_column] = weight_of_layout * (tp - ep);
  }
  return at;
}

}  // namespace

RoofRates roof_rates(const Gpu& gpu, const std::string& op, const KernelFormats& formats) {
  if (op == "all_reduce")
    return {FlopPerSecond{}, gpu.nvlink == BytesPerSecond{} ? gpu.pcie : gpu.nvlink};
  const bool weights = op == "gemm" || op == "experts";
  // Attention multiplies in 16 bits, whatever the format of the cache.
  const FlopPerSecond peak = weights ? peak_of(gpu, formats.weights, {}) : gpu.peak_16bit;
  return {peak, gpu.memory_bandwidth};
}

FittedTable::FittedTable(const ServingTable& table, const KernelFormats& formats,
                         const RoofRates& measured_on)
    : op_{table.op},
      title_{table.title()},
      gpu_{table.gpu},
      engine_{table.engine},
      formats_{formats},
      fit_{table.width} {
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto sizes = table.row(i);
    const Seconds roof = kernel_roof(op_, kernel_work(op_, formats_, sizes), measured_on.peak,
                                     measured_on.bandwidth);
    fit_.add(coordinates(op_, sizes).span(), std::log(table.times[i] / roof));
  }
}

FittedTable::Time FittedTable::at(std::span<const std::int64_t> sizes,
                                  const RoofRates& rates) const {
  const auto [value, exact, outside] = fit_.at(coordinates(op_, sizes).span());
  const Seconds roof =
      kernel_roof(op_, kernel_work(op_, formats_, sizes), rates.peak, rates.bandwidth);
  return {roof * std::exp(value), exact, outside};
}

double FittedTable::outside(std::span<const std::int64_t> sizes) const {
  return fit_.outside(coordinates(op_, sizes).span());
}

}  // namespace orrery
