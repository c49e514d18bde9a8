#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>

#include "sim/cluster/system.hpp"
#include "sim/kernels/gemm_formula.hpp"
#include "sim/kernels/kernel_time.hpp"
#include "sim/kernels/neighbours.hpp"
#include "sim/measurements/kernel_tables.hpp"

namespace orrery {

/// The table for products in `dtype`: its own, or that of the other 16-bit format; else null.
const GemmTable* find_gemm_table(const KernelTables* tables, Dtype dtype);

/// Time of C[m,n] = A[m,k] B[k,n] on one kind of GPU, at a benchmark's clocks.
///
/// Shapes   any positive m, n, k; the tables hold m >= 256 and n, k >= 512.
/// Units    seconds; the launch is in it, as a GPU-side gap of about 2 us.
/// Method   a formula of waves of tiles over multiprocessors with constants fitted per table, times
///          the exponential of what it misses at the nearest measured shapes
///          (docs/explanation/kernels.md).
///          fp16 uses the bf16 table: tensor cores run both at one rate.
/// Tag      measured: an exact row; interpolated: inside the table, or a GPU that stands in;
///          default_value: no table (a roofline), or over 4 times outside the table in any size.
/// Errors   the GPU has no units for `dtype` (infeasible).
/// Threads  answers are kept in the object: one thread at a time.
class GemmTime {
 public:
  /// `tables` may be null, and is not needed afterwards.
  GemmTime(const Gpu& gpu, Dtype dtype, const KernelTables* tables);

  KernelTime operator()(std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// The same in fp8 without quantising A, which a training step does once for several products and
  /// fuses with the kernel before. It equals the former in other formats.
  KernelTime without_cast(std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// Factor on a benchmark's time due to its falling clock (gemm_throttle); 1 without a table.
  double throttle(std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// The `products` of several experts of `layer`, without quantising, on multiprocessors with
  /// `clock` times the benchmark's clock; memory keeps its own. Experts share the multiprocessors
  /// up to Ampere, and in kernels that multiply for all `together`; otherwise, from Hopper on,
  /// experts' kernels run in sequence, and the addition of a weight gradient to its main gradient
  /// follows at the memory's full rate. No table has such kernels: docs/notes/kernel-errors.md has
  /// the errors against published ones.
  KernelTime grouped(const GroupedGemm& layer, std::span<const GemmProduct> products,
                     double clock) const;
  /// Time of `bytes` of HBM traffic at the rate of matrix products.
  Seconds streaming(Bytes bytes) const;
  /// The prediction without the row of this shape.
  KernelTime without_row(std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// Distance of the nearest row: 1.5 an octave of m n, 0.5 one of m / n or k; infinite if none.
  double distance(std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// The `most` nearest rows, by their index in find_gemm_table()'s, with their distances.
  std::vector<Neighbours<3>::Neighbour> nearest(std::int64_t m, std::int64_t n, std::int64_t k,
                                                std::size_t most) const;
  /// The formula alone, or the roofline without a table.
  Seconds base(std::int64_t m, std::int64_t n, std::int64_t k) const;

  /// Experts' kernels run in sequence, and grouped() includes their additions to main gradients.
  bool one_by_one(const GroupedGemm& layer) const {
    return base_ && one_by_one_ && !layer.together;
  }

 private:
  using Shape = std::array<std::int64_t, 3>;
  struct ShapeHash {
    std::size_t operator()(const Shape& shape) const;
  };

  double base_us(const GemmMachine& machine, const Shape& shape, bool cast) const;
  double roofline_us(std::span<const GemmProduct> products) const;
  double residual_at(const Shape& shape) const;
  double smooth_residual(const Shape& shape, std::size_t varies) const;
  bool inside(const Shape& shape) const;
  KernelTime predict(const Shape& shape, bool cast, bool use_row) const;

  Dtype dtype_;
  GemmMachine machine_;
  bool one_by_one_ = false;  // Grouped products run in sequence.
  bool own_table_ = false;   // Measured on this very GPU: its rows apply unchanged.
  std::optional<GemmBase> base_;
  Shape least_{}, most_{};
  Neighbours<3> residual_;
  std::unordered_map<Shape, std::size_t, ShapeHash> row_of_;
  mutable std::unordered_map<Shape, KernelTime, ShapeHash> known_, known_without_cast_;
  mutable std::unordered_map<Shape, double, ShapeHash> known_residual_;
  /// Time of one expert in us, by its rows (0: unknown): routed layers repeat the same ones often,
  /// in no order, and the nodes of a map would miss the cache. Keys are clock, pass, widths, and if
  /// results are added.
  using GroupedKey = std::tuple<double, GemmPass, std::int64_t, std::int64_t, bool>;
  mutable std::map<GroupedKey, std::vector<double>> known_grouped_;
};

}  // namespace orrery
