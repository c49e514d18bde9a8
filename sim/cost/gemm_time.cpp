#include "sim/cost/gemm_time.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace orrery {
namespace {

// cuBLAS's and CUTLASS's usual output tiles; more kinds buy nothing (docs/CALIBRATION.md).
constexpr std::array<std::array<double, 2>, 4> tiles{
    {{256, 128}, {128, 256}, {128, 128}, {64, 64}}};

// Beyond this factor outside the measured sizes nothing measured supports an answer.
constexpr std::int64_t stretch = 4;

// Datasheets round; 2 % is more than any two of them disagree.
bool close(double a, double b) { return std::abs(a - b) <= 0.02 * b; }

double per_microsecond(double per_second) { return per_second * 1e-6; }

double bytes_moved(const std::array<std::int64_t, 3>& shape, Dtype dtype) {
  const auto [m, n, k] = shape;
  const double element = dtype == Dtype::fp8 ? 1.0 : dtype == Dtype::fp32 ? 4.0 : 2.0;
  const double result = dtype == Dtype::fp32 ? 4.0 : 2.0;  // fp8 products are written as bf16.
  return element * static_cast<double>(k) * static_cast<double>(m + n) +
         result * static_cast<double>(m) * static_cast<double>(n);
}

double flop(const std::array<std::int64_t, 3>& shape) {
  return 2.0 * static_cast<double>(shape[0]) * static_cast<double>(shape[1]) *
         static_cast<double>(shape[2]);
}

// Distances between shapes. The number of tiles decides most, so neighbours must share m*n before
// anything else; the form m/n and the depth k change the residual slowly.
Neighbours<3>::Point coordinates(const std::array<std::int64_t, 3>& shape) {
  const double m = std::log2(static_cast<double>(shape[0]));
  const double n = std::log2(static_cast<double>(shape[1]));
  const double k = std::log2(static_cast<double>(shape[2]));
  return {1.5 * (m + n), 0.5 * (m - n), 0.5 * k};
}

const GemmTable* find_table(const KernelTables* tables, Dtype dtype) {
  if (!tables) return nullptr;
  const Dtype measured = dtype == Dtype::fp16 ? Dtype::bf16 : dtype;
  for (const GemmTable& table : tables->gemm)
    if (table.dtype == measured && !table.rows.empty()) return &table;
  return nullptr;
}

}  // namespace

std::size_t GemmTime::ShapeHash::operator()(const Shape& shape) const {
  std::size_t hash = 0;
  for (const std::int64_t size : shape)  // Knuth's multiplicative hash, TAOCP 3, section 6.4.
    hash = (hash ^ static_cast<std::size_t>(size)) * 0x9e3779b97f4a7c15u;
  return hash;
}

GemmTime::GemmTime(const Gpu& gpu, Dtype dtype, const KernelTables* tables)
    : dtype_{dtype},
      machine_{per_microsecond(gpu.peak(dtype, Place{"", ""}).si()),
               per_microsecond(gpu.memory_bandwidth.si()),
               static_cast<double>(gpu.multiprocessors)} {
  const GemmTable* table = find_table(tables, dtype);
  if (!table) return;
  base_ = table->base;
  const MeasuredGpu& measured = table->measured_on;
  const Machine reference{
      per_microsecond((dtype == Dtype::fp8 ? measured.peak_fp8 : measured.peak_16bit).si()),
      per_microsecond(measured.memory_bandwidth.si()),
      static_cast<double>(measured.multiprocessors)};
  // The reference figures are part of the fit. Where the GPU is the measured one and the catalog's
  // differ from them by rounding only, they are used instead, so that a row comes back as it was
  // measured; a GPU of that name with other figures ("what if") is one that the table stands in
  // for.
  own_table_ = tables->used_for == measured.name && close(machine_.peak, reference.peak) &&
               close(machine_.bandwidth, reference.bandwidth) &&
               machine_.multiprocessors == reference.multiprocessors;
  if (own_table_) machine_ = reference;

  least_ = most_ = {table->rows[0].m, table->rows[0].n, table->rows[0].k};
  for (const GemmRow& row : table->rows) {
    const Shape shape{row.m, row.n, row.k};
    for (std::size_t i = 0; i < 3; ++i) {
      least_[i] = std::min(least_[i], shape[i]);
      most_[i] = std::max(most_[i], shape[i]);
    }
    row_of_.emplace(shape, residual_.size());
    residual_.add(coordinates(shape),
                  std::log(row.time.si() * 1e6 / base_us(reference, shape, true)));
  }
}

double GemmTime::base_us(const Machine& machine, const Shape& shape, bool cast) const {
  const auto [m, n, k] = shape;
  const double sms = machine.multiprocessors;
  const double peak_per_sm = machine.peak / sms;
  double compute = std::numeric_limits<double>::infinity();
  for (const auto& [a, b] : tiles) {
    const double waves =
        std::ceil(static_cast<double>(m) / a) * std::ceil(static_cast<double>(n) / b) / sms;
    const double counted =
        base_->hard * std::ceil(waves) + (1.0 - base_->hard) * std::max(waves, 1.0);
    const double tile =
        2.0 * a * b * static_cast<double>(k) / (base_->compute_efficiency * peak_per_sm);
    compute = std::min(compute, counted * (tile + base_->tile_overhead.si() * 1e6));
  }
  const double memory = bytes_moved(shape, dtype_) / (base_->memory_efficiency * machine.bandwidth);
  // A norm instead of a maximum: near the ridge both limits are felt at once.
  double core = std::sqrt(std::sqrt(std::pow(compute, 4) + std::pow(memory, 4)));
  // Long kernels draw more power and clock down: from about 1500 us of ideal time on.
  core *= 1.0 + base_->throttle / (1.0 + 1500.0 * machine.peak / flop(shape));
  double time = core + base_->overhead.si() * 1e6;
  if (dtype_ == Dtype::fp8 && cast)  // Reads 2 bytes and writes 1 for every element of A.
    time += base_->cast_overhead.si() * 1e6 + 3.0 * static_cast<double>(m) *
                                                  static_cast<double>(k) /
                                                  (base_->cast_efficiency * machine.bandwidth);
  return time;
}

double GemmTime::roofline_us(const Shape& shape) const {
  const Roofline roofline;
  return std::max(flop(shape) / (roofline.compute_efficiency * machine_.peak),
                  bytes_moved(shape, dtype_) / (roofline.memory_efficiency * machine_.bandwidth)) +
         roofline.launch.si() * 1e6;
}

KernelTime GemmTime::predict(const Shape& shape, bool cast, bool use_row) const {
  if (!base_) return {microseconds(roofline_us(shape)), Tag::default_value};
  const double base = base_us(machine_, shape, cast);
  const auto row = row_of_.find(shape);
  if (use_row && row != row_of_.end()) {
    const bool exact = own_table_ && (cast || dtype_ != Dtype::fp8);
    return {microseconds(base * std::exp(residual_.value(row->second))),
            exact ? Tag::measured : Tag::interpolated};
  }
  const std::size_t left_out = row == row_of_.end() ? residual_.nobody : row->second;
  const double time = base * std::exp(residual_.at(coordinates(shape), left_out));
  bool inside = true;
  for (std::size_t i = 0; i < 3; ++i)
    inside = inside && shape[i] * stretch >= least_[i] && shape[i] <= most_[i] * stretch;
  return {microseconds(time), inside ? Tag::interpolated : Tag::default_value};
}

KernelTime GemmTime::operator()(std::int64_t m, std::int64_t n, std::int64_t k) const {
  assert(m > 0 && n > 0 && k > 0);
  const auto [place, fresh] = known_.try_emplace({m, n, k});
  if (fresh) place->second = predict({m, n, k}, true, true);
  return place->second;
}

KernelTime GemmTime::without_cast(std::int64_t m, std::int64_t n, std::int64_t k) const {
  if (dtype_ != Dtype::fp8) return (*this)(m, n, k);
  assert(m > 0 && n > 0 && k > 0);
  const auto [place, fresh] = known_without_cast_.try_emplace({m, n, k});
  if (fresh) place->second = predict({m, n, k}, false, true);
  return place->second;
}

KernelTime GemmTime::without_row(std::int64_t m, std::int64_t n, std::int64_t k) const {
  assert(m > 0 && n > 0 && k > 0);
  return predict({m, n, k}, true, false);
}

Seconds GemmTime::base(std::int64_t m, std::int64_t n, std::int64_t k) const {
  assert(m > 0 && n > 0 && k > 0);
  return microseconds(base_ ? base_us(machine_, {m, n, k}, true) : roofline_us({m, n, k}));
}

}  // namespace orrery
