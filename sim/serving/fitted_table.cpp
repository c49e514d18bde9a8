#include "sim/serving/fitted_table.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace orrery {
namespace {

constexpr std::size_t nearest_points = 16;
constexpr std::size_t most_dimensions = 7;
constexpr double softening = 0.1;
constexpr double ridge = 0.01;
constexpr double widening = 0.25;
constexpr double same = 1e-18;

struct Near {
  double square = std::numeric_limits<double>::infinity();
  std::size_t index = 0;
};

// Solves the symmetric system in place by elimination with pivots; `n` unknowns.
using Row = std::array<double, most_dimensions + 2>;
double first_unknown(std::array<Row, most_dimensions + 1>& system, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) {
    std::size_t pivot = i;
    for (std::size_t r = i + 1; r < n; ++r)
      if (std::abs(system[r][i]) > std::abs(system[pivot][i])) pivot = r;
    std::swap(system[i], system[pivot]);
    for (std::size_t r = 0; r < n; ++r) {
      if (r == i) continue;
      const double factor = system[r][i] / system[i][i];
      for (std::size_t c = i; c <= n; ++c) system[r][c] -= factor * system[i][c];
    }
  }
  return system[0][n] / system[0][0];
}

}  // namespace

void LocalFit::add(std::span<const double> point, double value) {
  assert(point.size() == dimensions_ && dimensions_ <= most_dimensions);
  if (values_.empty()) {
    least_.assign(point.begin(), point.end());
    most_ = least_;
  }
  for (std::size_t j = 0; j < dimensions_; ++j) {
    least_[j] = std::min(least_[j], point[j]);
    most_[j] = std::max(most_[j], point[j]);
  }
  points_.insert(points_.end(), point.begin(), point.end());
  values_.push_back(value);
}

double LocalFit::outside(std::span<const double> x) const {
  double square = 0.0;
  for (std::size_t j = 0; j < dimensions_; ++j) {
    const double beyond = x[j] - std::clamp(x[j], least_[j], most_[j]);
    square += beyond * beyond;
  }
  return std::sqrt(square);
}

LocalFit::Answer LocalFit::at(std::span<const double> query) const {
  assert(query.size() == dimensions_ && !values_.empty());
  std::array<double, most_dimensions> x{};
  for (std::size_t j = 0; j < dimensions_; ++j) x[j] = std::clamp(query[j], least_[j], most_[j]);

  std::array<Near, nearest_points> near;  // Sorted by distance.
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const double* point = &points_[i * dimensions_];
    double square = 0.0;
    for (std::size_t j = 0; j < dimensions_; ++j) square += (x[j] - point[j]) * (x[j] - point[j]);
    if (square >= near.back().square) continue;
    std::size_t slot = nearest_points - 1;
    for (; slot > 0 && near[slot - 1].square > square; --slot) near[slot] = near[slot - 1];
    near[slot] = {square, i};
  }
  const double beyond = outside(query);
  if (near[0].square < same) return {values_[near[0].index], beyond == 0.0, beyond};

  const std::size_t n = dimensions_ + 1;
  std::array<Row, most_dimensions + 1> system{};
  double weights = 0.0;
  double lowest = std::numeric_limits<double>::infinity(), highest = -lowest;
  for (const auto& [square, index] : near) {
    if (square == std::numeric_limits<double>::infinity()) break;
    const double softened = square + softening;
    const double weight = 1.0 / (softened * softened * std::sqrt(softened));
    const double value = values_[index];
    std::array<double, most_dimensions + 1> row{1.0};
    for (std::size_t j = 0; j < dimensions_; ++j)
      row[j + 1] = points_[index * dimensions_ + j] - x[j];
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) system[i][j] += weight * row[i] * row[j];
      system[i][n] += weight * row[i] * value;
    }
    weights += weight;
    lowest = std::min(lowest, value);
    highest = std::max(highest, value);
  }
  for (std::size_t i = 1; i < n; ++i) system[i][i] += ridge * weights;
  const double value = std::clamp(first_unknown(system, n), lowest - widening, highest + widening);
  return {value, false, beyond};
}

namespace {

constexpr std::size_t most_sizes = 7;
// Fewer new tokens than these are no prompt: tables have rows of one behind 65,536 others.
constexpr std::int64_t least_prompt = 64;
constexpr std::size_t batch_column = 4;
constexpr double octaves_of_a_window = 4.0;
constexpr double weight_of_head_dim = 2.0;
constexpr double weight_of_layout = 0.4;
// An octave of index heads tells the two models of the tables apart.
constexpr double weight_of_index_heads = 4.0;
constexpr std::size_t index_heads_column = 2;
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
  if (is_module(op)) at.x[index_heads_column] *= weight_of_index_heads;
  if (is_of_experts(op)) {
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
  const bool weights = op == "gemm" || is_of_experts(op) || is_module(op);
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
    if (!is_module(op_)) continue;
    const bool decodes = op_.find("_decode") != op_.npos;
    const std::int64_t tokens = decodes ? 0 : sizes[sizes.size() - 2];
    std::int64_t& most = reach_[sizes[batch_column]];
    if (decodes || tokens >= least_prompt) most = std::max(most, sizes.back() - tokens);
  }
}

FittedTable::Time FittedTable::at(std::span<const std::int64_t> sizes, const RoofRates& rates,
                                  const KernelFormats& formats) const {
  const auto [value, exact, outside] = fit_.at(coordinates(op_, sizes).span());
  const Seconds roof =
      kernel_roof(op_, kernel_work(op_, formats, sizes), rates.peak, rates.bandwidth);
  return {roof * std::exp(value), exact, outside};
}

std::int64_t FittedTable::reach(std::int64_t requests) const {
  if (reach_.empty()) return 0;
  std::int64_t most = 0;
  for (auto row = reach_.lower_bound(std::min(requests, reach_.rbegin()->first));
       row != reach_.end(); ++row)
    most = std::max(most, row->second);
  return most;
}

double FittedTable::outside(std::span<const std::int64_t> sizes) const {
  return fit_.outside(coordinates(op_, sizes).span());
}

namespace {

bool is_left_out(std::span<const std::int64_t> sizes) {
  std::uint64_t hash = 0;
  for (const std::int64_t size : sizes)  // Knuth's multiplicative hash, TAOCP 3, section 6.4.
    hash = (hash ^ static_cast<std::uint64_t>(size)) * 0x9e3779b97f4a7c15u;
  return (hash >> 32) % 4 == 0;
}

}  // namespace

std::vector<LeftOutRow> left_out_rows(const ServingTable& table, const Gpu& gpu) {
  const KernelFormats formats{format_named(table.weights, FormatUse::weights).value_or(Dtype::bf16),
                              format_named(table.kv, FormatUse::kv_cache).value_or(Dtype::bf16)};
  const RoofRates rates = roof_rates(gpu, table.op, formats);
  ServingTable kept = table;
  kept.sizes.clear();
  kept.times.clear();
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const auto sizes = table.row(i);
    if (is_left_out(sizes)) continue;
    kept.sizes.insert(kept.sizes.end(), sizes.begin(), sizes.end());
    kept.times.push_back(table.times[i]);
  }
  std::vector<LeftOutRow> rows;
  if (kept.times.empty()) return rows;
  const FittedTable fitted{kept, formats, rates};
  for (std::size_t i = 0; i < table.rows(); ++i)
    if (const auto sizes = table.row(i); is_left_out(sizes))
      rows.push_back({i, table.times[i], fitted.at(sizes, rates).time});
  return rows;
}

std::vector<double> left_out_errors(const ServingTable& table, const Gpu& gpu) {
  std::vector<double> errors;
  for (const LeftOutRow& row : left_out_rows(table, gpu))
    errors.push_back(row.predicted / row.measured - 1.0);
  return errors;
}

}  // namespace orrery
