#include "sim/kernels/gemm_time.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sim/kernels/neighbours.hpp"

namespace orrery {
namespace {

// Times of experts are cached up to this number of rows, 8 MB a layer's product.
constexpr std::size_t known_rows = std::size_t{1} << 20;

double per_microsecond(double per_second) { return per_second * 1e-6; }

// Distances between shapes. The number of tiles has the largest effect, so neighbours must agree in
// m*n first; the form m/n and the depth k change the residual slowly.
Neighbours<3>::Point tile_coordinates(const std::array<std::int64_t, 3>& shape) {
  const double m = std::log2(static_cast<double>(shape[0]));
  const double n = std::log2(static_cast<double>(shape[1]));
  const double k = std::log2(static_cast<double>(shape[2]));
  return {1.5 * (m + n), 0.5 * (m - n), 0.5 * k};
}

}  // namespace

const GemmTable* find_gemm_table(const KernelTables* tables, Dtype dtype) {
  if (!tables) return nullptr;
  const GemmTable* like = nullptr;
  for (const GemmTable& table : tables->gemm) {
    if (table.rows.empty()) continue;
    if (table.dtype == dtype) return &table;
    if (!like && measured_as(table.dtype) == measured_as(dtype)) like = &table;
  }
  return like;
}

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
               static_cast<double>(gpu.multiprocessors)},
      one_by_one_{gpu.architecture >= Architecture::hopper} {
  const GemmTable* table = find_gemm_table(tables, dtype);
  if (!table) return;
  base_ = table->base;
  const MeasuredGpu& measured = table->measured_on;
  const GemmMachine reference = gemm_machine(measured, dtype);
  // The reference figures are part of the fit. They are used if the GPU is the measured one and the
  // catalog's figures differ by rounding only, so that a row is reproduced exactly; for a GPU of
  // that name with other figures ("what if") the table is a proxy.
  own_table_ = tables->used_for == measured.name && is_same_figure(machine_.peak, reference.peak) &&
               is_same_figure(machine_.bandwidth, reference.bandwidth) &&
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
    residual_.add(tile_coordinates(shape),
                  std::log(row.time.si() * 1e6 / base_us(reference, shape, true)));
  }
}

double GemmTime::base_us(const GemmMachine& machine, const Shape& shape, bool cast) const {
  const GemmProduct product{shape[0], shape[1], shape[2]};
  return gemm_formula_us(*base_, machine, dtype_, {&product, 1}, cast);
}

double GemmTime::roofline_us(std::span<const GemmProduct> products) const {
  const Roofline roofline;
  return std::max(gemm_flop(products) / (roofline.compute_efficiency * machine_.peak),
                  streaming(Bytes{gemm_bytes(products, dtype_)}).si() * 1e6) +
         roofline.launch.si() * 1e6;
}

Seconds GemmTime::streaming(Bytes bytes) const {
  const double efficiency = base_ ? base_->memory_efficiency : Roofline{}.memory_efficiency;
  return microseconds(bytes.si() / (efficiency * machine_.bandwidth));
}

bool GemmTime::inside(const Shape& shape) const {
  for (std::size_t i = 0; i < 3; ++i)
    if (shape[i] * table_reach < least_[i] || shape[i] > most_[i] * table_reach) return false;
  return true;
}

double GemmTime::residual_at(const Shape& shape) const {
  const auto [place, fresh] = known_residual_.try_emplace(shape);
  if (fresh) place->second = residual_.at(tile_coordinates(shape));
  return place->second;
}

KernelTime GemmTime::predict(const Shape& shape, bool cast, bool use_row) const {
  const GemmProduct product{shape[0], shape[1], shape[2]};
  if (!base_) return {microseconds(roofline_us({&product, 1})), Tag::default_value};
  const double base = base_us(machine_, shape, cast);
  const auto row = row_of_.find(shape);
  if (use_row && row != row_of_.end()) {
    const bool exact = own_table_ && (cast || !base_->casts());
    return {microseconds(base * std::exp(residual_.value(row->second))),
            exact ? Tag::measured : Tag::interpolated};
  }
  const std::size_t left_out = row == row_of_.end() ? residual_.no_point : row->second;
  const double time = base * std::exp(residual_.at(tile_coordinates(shape), left_out));
  return {microseconds(time), inside(shape) ? Tag::interpolated : Tag::default_value};
}

KernelTime GemmTime::operator()(std::int64_t m, std::int64_t n, std::int64_t k) const {
  assert(m > 0 && n > 0 && k > 0);
  const auto [place, fresh] = known_.try_emplace({m, n, k});
  if (fresh) place->second = predict({m, n, k}, true, true);
  return place->second;
}

KernelTime GemmTime::without_cast(std::int64_t m, std::int64_t n, std::int64_t k) const {
  if (!base_ || !base_->casts()) return (*this)(m, n, k);
  assert(m > 0 && n > 0 && k > 0);
  const auto [place, fresh] = known_without_cast_.try_emplace({m, n, k});
  if (fresh) place->second = predict({m, n, k}, false, true);
  return place->second;
}

double GemmTime::throttle(std::int64_t m, std::int64_t n, std::int64_t k) const {
  if (!base_) return 1.0;
  const GemmProduct product{m, n, k};
  constexpr double long_us = 300.0;  // docs/explanation/kernels.md.
  const double share = long_us * machine_.peak / gemm_flop({&product, 1});
  const auto row = row_of_.find({m, n, k});
  const double residual =
      row == row_of_.end() ? residual_at({m, n, k}) : residual_.value(row->second);
  const double held = std::exp(std::max(0.0, residual) / (1.0 + share * share * share));
  return std::min(gemm_throttle(*base_, machine_, {&product, 1}) * held, 1.0 + base_->throttle);
}

// Interpolates between powers of two of the size that tokens determine, to save lookups.
double GemmTime::smooth_residual(const Shape& shape, std::size_t varies) const {
  const double octave = std::log2(static_cast<double>(shape[varies]));
  const auto below = static_cast<std::int64_t>(std::floor(octave));
  const double share = octave - static_cast<double>(below);
  Shape lower = shape, upper = shape;
  lower[varies] = std::int64_t{1} << below;
  upper[varies] = std::int64_t{2} << below;
  return (1.0 - share) * residual_at(lower) + share * residual_at(upper);
}

KernelTime GemmTime::grouped(const GroupedGemm& layer, std::span<const GemmProduct> products,
                             double clock) const {
  assert(!products.empty());
  if (!base_) return {microseconds(roofline_us(products) / clock), Tag::default_value};

  const bool wgrad = layer.pass == GemmPass::wgrad;
  const std::size_t varies = wgrad ? 2 : 0;
  // A product that is added to a main gradient is not written separately.
  const bool each = one_by_one(layer);
  const bool adds = each && wgrad && layer.accumulate > 0.0;
  const auto predicted = [&](std::span<const GemmProduct> together, const Shape& like) {
    return gemm_formula_us(*base_, machine_, dtype_, together, false, clock, !adds) *
           std::exp(smooth_residual(like, varies));
  };
  double time = 0.0;
  bool known = true;
  if (each) {
    std::vector<double>& known_times =
        known_grouped_[{clock, layer.pass, layer.out, layer.in, adds}];
    for (const GemmProduct& product : products) {
      const Shape shape{product.m, product.n, product.k};
      const auto rows = static_cast<std::size_t>(shape[varies]);
      if (rows >= known_rows) {
        time += predicted({&product, 1}, shape);
      } else {
        if (rows >= known_times.size()) known_times.resize(rows + 1, 0.0);
        if (known_times[rows] == 0.0) known_times[rows] = predicted({&product, 1}, shape);
        time += known_times[rows];
      }
      // All tiles of a wave write their results at the same time, and nothing overlaps.
      if (adds)
        time += layer.accumulate * static_cast<double>(product.m * product.n) / machine_.bandwidth;
      known = known && inside(shape);
    }
  } else {
    // The product with as many tiles: all rows, or in wgrad all results and the mean depth.
    const auto experts = static_cast<std::int64_t>(products.size());
    std::int64_t all = 0;
    for (const GemmProduct& product : products) all += wgrad ? product.k : product.m;
    const Shape like = wgrad ? Shape{experts * layer.out, layer.in, all / experts}
                             : Shape{all, products[0].n, products[0].k};
    time = predicted(products, like);
    known = inside(like);
  }
  return {microseconds(time), known ? Tag::interpolated : Tag::default_value};
}

KernelTime GemmTime::without_row(std::int64_t m, std::int64_t n, std::int64_t k) const {
  assert(m > 0 && n > 0 && k > 0);
  return predict({m, n, k}, true, false);
}

double GemmTime::distance(std::int64_t m, std::int64_t n, std::int64_t k) const {
  return residual_.distance(tile_coordinates({m, n, k}));
}

std::vector<Neighbours<3>::Neighbour> GemmTime::nearest(std::int64_t m, std::int64_t n,
                                                        std::int64_t k, std::size_t most) const {
  return residual_.nearest(tile_coordinates({m, n, k}), most);
}

Seconds GemmTime::base(std::int64_t m, std::int64_t n, std::int64_t k) const {
  assert(m > 0 && n > 0 && k > 0);
  const GemmProduct product{m, n, k};
  return microseconds(base_ ? base_us(machine_, {m, n, k}, true) : roofline_us({&product, 1}));
}

}  // namespace orrery
