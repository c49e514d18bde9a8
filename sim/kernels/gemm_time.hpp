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

/// The table that products in `dtype` are priced from: its own, or that of the other 16-bit format.
/// Null: there is none.
const GemmTable* find_gemm_table(const KernelTables* tables, Dtype dtype);

/// How long C[m,n] = A[m,k] B[k,n] takes on one kind of GPU, in a benchmark's clocks.
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
  /// The same in fp8 without quantising A, which a training step does once for several products
  /// and fuses with the kernel before. Other formats have no such part.
  KernelTime without_cast(std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// What of a benchmark's time is due to its own falling clock (gemm_throttle); 1 without a table.
  double throttle(std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// The `products` of several experts of `layer`, without quantising, on multiprocessors with
  /// `clock` times the benchmark's clock; memory keeps its own. Up to Ampere, and in kernels that
  /// multiply for all `together`, experts share the multiprocessors; else from Hopper on one's
  /// kernel follows the other's, and what a weight gradient adds to its main gradient follows at
  /// the memory's full rate. No table holds such kernels: docs/notes/kernel-errors.md has the
  /// errors against those published.
  KernelTime grouped(const GroupedGemm& layer, std::span<const GemmProduct> products,
                     double clock) const;
  /// `bytes` of HBM traffic as a matrix product reads and writes them.
  Seconds streaming(Bytes bytes) const;
  /// As if the row of this shape, should there be one, had not been measured.
  KernelTime without_row(std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// How far the nearest row is: 1.5 for an octave of m n, 0.5 for one of m / n or of k; infinite
  /// without a table.
  double distance(std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// The `most` nearest rows, by their places in find_gemm_table()'s, with their distances.
  std::vector<Neighbours<3>::Neighbour> nearest(std::int64_t m, std::int64_t n, std::int64_t k,
                                                std::size_t most) const;
  /// The formula alone, or the roofline where there is no table.
  Seconds base(std::int64_t m, std::int64_t n, std::int64_t k) const;

  /// Whether experts' kernels follow each other, and grouped() holds what they add to main
  /// gradients.
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
  bool one_by_one_ = false;  // Grouped products.
  bool own_table_ = false;   // Measured on this very GPU: its rows are true for it.
  std::optional<GemmBase> base_;
  Shape least_{}, most_{};
  Neighbours<3> residual_;
  std::unordered_map<Shape, std::size_t, ShapeHash> row_of_;
  mutable std::unordered_map<Shape, KernelTime, ShapeHash> known_, known_without_cast_;
  mutable std::unordered_map<Shape, double, ShapeHash> known_residual_;
  /// Of one expert in us, by its rows (0: not known yet): routed layers ask for the same ones again
  /// and again, in no order, where the nodes of a map would miss the cache. By clock, pass, widths,
  /// and whether results are added.
  using GroupedKey = std::tuple<double, GemmPass, std::int64_t, std::int64_t, bool>;
  mutable std::map<GroupedKey, std::vector<double>> known_grouped_;
};

}  // namespace orrery
