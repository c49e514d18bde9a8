#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/core/enum_words.hpp"
#include "sim/core/json_value.hpp"

namespace orrery {

/// Bounds of a row's values: wide enough for any kernel, narrow enough to catch a wrong unit.
namespace row_bounds {
constexpr double largest_size = 0x1p32;
constexpr double shortest_us = 0.01;
constexpr double longest_us = 1e9;
}  // namespace row_bounds

/// `tables`: a library of its own, whose efficiency refers to the tables of serving kernels.
enum class AttentionLibrary { cudnn, flash_attention_2, tables };
template <>
inline const std::vector<std::string> enum_words<AttentionLibrary>{"cudnn", "flash_attention_2",
                                                                   "tables"};

/// One fused attention of a training step, causal, measured in isolation: keys are `key_dim` wide,
/// values `value_dim`. `window` is the number of keys before a query that it sees; 0: all.
struct TrainingAttentionRow {
  Dtype format = Dtype::bf16;
  std::int64_t batch = 0, sequence = 0, heads = 0, kv_heads = 0, key_dim = 0, value_dim = 0;
  std::int64_t window = 0;
  Seconds forward, backward;
  AttentionLibrary library = AttentionLibrary::cudnn;
};

/// Measured times of cuDNN's and FlashAttention 2's kernels for training. The tables of attention
/// (AttentionTable) are of serving, forward only, and of another library.
struct TrainingAttention {
  std::string gpu;
  std::string source;
  FlopPerSecond peak_16bit;  ///< Peak of the GPU that they were measured on.
  std::vector<TrainingAttentionRow> rows;
};

TrainingAttention parse_training_attention(const JsonValue& json);

/// Rows of a GPU in calibration/data/training_attention; empty if nothing was measured on it.
std::optional<TrainingAttention> read_training_attention(const std::string& gpu);

/// One measured matrix multiplication: C[m,n] = A[m,k] B[k,n].
struct GemmRow {
  std::int64_t m = 0, n = 0, k = 0;
  Seconds time;
};

/// The figures that a table's base constants were fitted with. The constants absorb their errors,
/// so a table is only of use together with them.
struct MeasuredGpu : Peaks {
  std::string name;
  BytesPerSecond memory_bandwidth;
  int multiprocessors = 0;
};

/// Constants of the wave-quantisation base (docs/explanation/kernels.md has the formula).
/// `overhead` t0 and `tile_overhead` c are times; the others are ratios.
struct GemmBase {
  Seconds overhead;
  Seconds tile_overhead;
  double compute_efficiency = 0.0;  ///< e
  double memory_efficiency = 0.0;   ///< eb
  double hard = 0.0;                ///< 1: a tail wave costs a whole one; 0: it costs its share.
  double throttle = 0.0;            ///< thr: loss of long kernels to falling clocks.
  Seconds cast_overhead;            ///< tq: quantising the activations.
  double cast_efficiency = 0.0;     ///< ebq

  /// The rows include the quantisation of A, as fp8 tables of a serving framework do.
  bool casts() const { return cast_efficiency > 0.0; }
};

/// Leave-one-out errors of a table's rows, predicted / measured - 1 (sim/kernels/kernel_error.hpp).
struct LeftOutError {
  std::int64_t rows = 0;
  double median = 0.0;  ///< Median of the absolute value.
  double p90 = 0.0;     ///< 90th percentile of the absolute value.
  double bias = 0.0;    ///< Median; below 0 predictions are too fast.
};

struct GemmTable {
  Dtype dtype = Dtype::bf16;
  std::string source;
  MeasuredGpu measured_on;
  GemmBase base;
  std::optional<LeftOutError> left_out{};
  std::vector<GemmRow> rows;
};

/// One measured causal attention forward pass.
struct AttentionRow {
  std::int64_t batch = 0, sequence = 0, heads = 0, kv_heads = 0, head_dim = 0;
  Seconds time;
};

/// Constants of the attention base for one head dimension (docs/explanation/kernels.md).
struct AttentionBase {
  std::int64_t head_dim = 0;
  Seconds overhead;
  double efficiency = 0.0;
  double diagonal = 0.0;  ///< delta: extra keys per query row.
  double query_traffic = 0.0;
  double key_traffic = 0.0;
  double hard = 0.0;
  double isolated = 0.0;
  std::optional<LeftOutError> left_out{};  ///< Errors of the rows of this head dimension.
};

struct AttentionTable {
  enum class Measures {
    serving_step,  ///< Includes the cache write and the launches around it.
    kernel,        ///< Only the kernel.
  };

  std::string source;
  Measures measures = Measures::serving_step;
  MeasuredGpu measured_on;
  std::vector<AttentionBase> bases;  ///< Sorted by head dimension.
  std::vector<AttentionRow> rows;
};

/// Measurements of one kind of GPU: calibration/data/kernels/<gpu>.json.
struct KernelTables {
  std::string gpu;       ///< The GPU that the tables were measured on.
  std::string used_for;  ///< The GPU that they are used for: differs if this is a proxy.
  std::vector<GemmTable> gemm;
  std::optional<AttentionTable> attention;
  std::optional<TrainingAttention> training_attention;
  double sustained = 1.0;         ///< Training clock over benchmark clock, GEMM forward and dgrad.
  double wgrad_efficiency = 1.0;  ///< Relative to a forward GEMM of the same shape.
  double copy_efficiency = 0.85;  ///< Share of the memory bandwidth that streaming kernels reach.
  bool copy_measured = false;     ///< That share was measured on this GPU.
  double attention_backward = 2.5;  ///< Backward over forward time of fused attention.
  double grouped_efficiency = 1.0;  ///< Experts' products relative to plain ones' prediction.
  /// Loss of kernels to a concurrent collective, relative to its share of the multiprocessors.
  double overlap_loss_share = 1.0;
  /// Sources of the factors by their keys in the file; the last two may be missing there.
  struct FactorSource {
    bool measured = false;
    std::string source;
  };
  std::map<std::string, FactorSource> factor_sources;
};

/// Tables for `gpu`, or empty if neither it nor a proxy (stand_ins.json) was measured. Errors: an
/// invalid table file, with its place.
std::optional<KernelTables> read_kernel_tables(const std::string& gpu);

/// The GPU whose tables those are: `gpu` itself, its proxy, or "" if neither was measured.
std::string gpu_of_kernel_tables(const std::string& gpu);

/// One file of schema "orrery.kernels/1", without proxies: `used_for` is `gpu`.
KernelTables parse_kernel_tables(const JsonValue& json);

}  // namespace orrery
