#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/cost/kernel_time.hpp"
#include "sim/cost/neighbours.hpp"
#include "sim/input/kernel_tables.hpp"
#include "sim/input/system.hpp"

namespace orrery {

/// One fused attention kernel on one rank.
struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t seq_q = 0;
  std::int64_t seq_kv = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;  ///< Where keys and values differ: their mean, which keeps the flop.
  bool causal = true;         ///< The last query sees all keys; needs seq_q <= seq_kv.

  bool operator==(const AttentionShape&) const = default;
};

/// How long fused (flash) attention takes on one kind of GPU.
///
/// Flop     forward 2 * batch * heads * seq_q * keys * head_dim, with keys = seq_kv for a square
///          causal mask, 2 * seq_kv without a mask, and 2 * seq_kv - seq_q for the last seq_q
///          queries of a causal sequence; backward 2.5 times that.
/// Method   a formula of query blocks over multiprocessors plus memory traffic, constants fitted
///          per table and head dimension, times what it misses at the nearest measured shapes. Head
///          dimensions between measured ones: time is linear in them (docs/CALIBRATION.md).
/// Training The tables time a serving step: the kernel with its cache write and launches. forward()
///          takes those out of the formula, so it never says measured; table_time() keeps them.
/// Tag      default_value without a table, for a head dimension outside the measured ones, or over
///          4 times outside the measured sequences.
class AttentionTime {
 public:
  /// `tables` may be null, and is not needed afterwards.
  AttentionTime(const Gpu& gpu, const KernelTables* tables);

  KernelTime forward(const AttentionShape& shape) const;
  KernelTime backward(const AttentionShape& shape) const;

  /// What the table says or, off its rows, would say: the serving step of a causal square.
  KernelTime table_time(const AttentionRow& shape) const;
  /// As if the row of this shape, should there be one, had not been measured.
  KernelTime table_time_without_row(const AttentionRow& shape) const;

 private:
  struct Machine {  // What the formula sees of a GPU, per microsecond.
    double peak = 0.0;
    double bandwidth = 0.0;
    double multiprocessors = 0.0;
  };
  struct HeadDim {  // All that was measured for one head dimension.
    AttentionBase base;
    Neighbours<4> residual;
    std::unordered_map<std::uint64_t, std::size_t> row_of;
  };
  enum class Purpose { serving, training };

  static std::optional<std::uint64_t> row_key(const AttentionShape& shape);
  static double base_us(const AttentionBase& base, const Machine& machine,
                        const AttentionShape& shape, Purpose purpose);
  double at_head_dim(const HeadDim& measured, const AttentionShape& shape, Purpose purpose,
                     bool use_row, bool* exact) const;
  KernelTime predict(const AttentionShape& shape, Purpose purpose, bool use_row) const;

  Machine machine_;
  bool own_table_ = false;
  double backward_factor_ = 0.0;
  std::int64_t shortest_ = 0, longest_ = 0;
  std::vector<HeadDim> measured_;  // By rising head dimension; empty: no table.
};

}  // namespace orrery
