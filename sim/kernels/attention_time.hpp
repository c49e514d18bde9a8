#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sim/cluster/system.hpp"
#include "sim/kernels/attention_formula.hpp"
#include "sim/kernels/kernel_time.hpp"
#include "sim/kernels/neighbours.hpp"
#include "sim/measurements/kernel_tables.hpp"

namespace orrery {

/// Backward over forward time without measurements.
double default_attention_backward(Architecture architecture);

/// Time of fused (flash) attention on one kind of GPU.
///
/// Flop     forward 2 * batch * heads * seq_q * keys * head_dim, with keys = seq_kv for a square
///          causal mask, 2 * seq_kv without a mask, and 2 * seq_kv - seq_q for the last seq_q
///          queries of a causal sequence (attention_keys has windows); backward three products
///          with keys' width and two with values', 2 + key_share times that.
/// Method   a formula of query blocks over multiprocessors plus memory traffic, constants fitted
///          per table and head dimension, times what it misses at the nearest measured shapes. Head
///          dimensions between measured ones: time is linear in them (docs/explanation/kernels.md).
///          With a window the formula alone.
/// Training Tables of a serving step time the kernel with its cache write and launches. forward()
///          takes those out of the formula, so it then never says measured; table_time() keeps
///          them. Where a table has the kernel alone, both are the same.
/// cuDNN    What was measured of its training kernels says how much faster or slower these are than
///          the tables' at the nearest measured shapes of the same kernel, head dimension and mask,
///          forward and backward by themselves; of another head dimension the nearest one measured.
/// Flash 2  Likewise, from rows of its own. Its deterministic backward pass fills the GPU in whole
///          waves (flash-attention, csrc/flash_attn/src/flash_bwd_launch_template.h,
///          run_flash_bwd_seqk_parallel).
/// Tag      default_value without a table, for a head dimension outside the measured ones, over 4
///          times outside the measured sequences, or with a window, as no kernel with one was
///          measured.
class AttentionTime {
 public:
  /// `tables` may be null, and is not needed afterwards. It must be null for fp32 and tf32, which
  /// tables lack; the GPU has units for `dtype`.
  AttentionTime(const Gpu& gpu, const KernelTables* tables, Dtype dtype = Dtype::bf16);

  KernelTime forward(const AttentionShape& shape) const;
  KernelTime backward(const AttentionShape& shape) const;

  /// The time of a row of the table, or its prediction for a causal square.
  KernelTime table_time(const AttentionRow& shape) const;
  /// The prediction without the row of this shape.
  KernelTime table_time_without_row(const AttentionRow& shape) const;
  /// The `most` nearest rows of the measured head dimension next to the shape's, by their index in
  /// the table, with their distances; none without a table.
  std::vector<Neighbours<4>::Neighbour> nearest(const AttentionShape& shape,
                                                std::size_t most) const;

 private:
  struct HeadDim {  // All measurements of one head dimension.
    AttentionBase base;
    Neighbours<4> residual;
    std::unordered_map<std::uint64_t, std::size_t> row_of;
    std::vector<std::size_t> places = {};  // Index in the table of each point of `residual`.
  };
  struct TrainingRows {  // Rows of one kernel and head dimension, with a window or without.
    AttentionKernel kernel = AttentionKernel::cudnn;
    Dtype format = Dtype::bf16;
    std::int64_t head_dim = 0;
    bool windowed = false;
    Neighbours<2> forward, backward;  // Logarithms of measured over predicted.
    std::int64_t shortest = 0, longest = 0;
  };
  const TrainingRows* training_rows(const AttentionShape& shape) const;
  static std::optional<std::uint64_t> row_key(const AttentionShape& shape);
  double at_head_dim(const HeadDim& measured, const AttentionShape& shape, AttentionScope scope,
                     bool use_row, bool* exact) const;
  KernelTime predict(const AttentionShape& shape, AttentionScope scope, bool use_row) const;
  void add_table(const AttentionTable& table, const std::string& used_for);
  void add_training_rows(const Gpu& gpu, const TrainingAttention& measured);
  KernelTime with_training_rows(const AttentionShape& shape, KernelTime time, bool backward) const;
  KernelTime deterministic(const AttentionShape& shape, KernelTime usual) const;

  GemmMachine machine_;
  double widths_of_16_bits_ = 1.0;  // Width of an element of queries, keys, values and the output.
  bool ampere_ = false;
  bool own_table_ = false;
  bool kernels_only_ = false;  // The rows time only the kernel.
  double sustained_ = 1.0;
  double backward_factor_ = 0.0;
  std::int64_t shortest_ = 0, longest_ = 0;
  std::vector<TrainingRows> training_;
  std::vector<HeadDim> measured_;  // Sorted by head dimension; empty without a table.
  mutable std::map<AttentionShape, KernelTime>
      known_;  // Cache of training kernels, as plans repeat them.
};

}  // namespace orrery
