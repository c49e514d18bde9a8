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

/// Bounds of what a row of a table may say: wide enough for any kernel, narrow enough to catch a
/// wrong unit.
namespace row_bounds {
constexpr double largest_size = 0x1p32;
constexpr double shortest_us = 0.01;
constexpr double longest_us = 1e9;
}  // namespace row_bounds

enum class AttentionLibrary { cudnn, flash_attention_2 };
template <>
inline const std::vector<std::string> enum_words<AttentionLibrary>{"cudnn", "flash_attention_2"};

/// One fused attention of a training step, causal, measured alone: keys are `key_dim` wide, values
/// `value_dim`. `window`: keys before a query that it sees; 0: all.
struct TrainingAttentionRow {
  Dtype format = Dtype::bf16;
  std::int64_t batch = 0, sequence = 0, heads = 0, kv_heads = 0, key_dim = 0, value_dim = 0;
  std::int64_t window = 0;
  Seconds forward, backward;
  AttentionLibrary library = AttentionLibrary::cudnn;
};

/// What cuDNN's and FlashAttention 2's kernels for training were measured to take. The tables of
/// attention (AttentionTable) are of serving, forward alone, and of another library.
struct TrainingAttention {
  std::string gpu;
  std::string source;
  FlopPerSecond peak_16bit;  ///< Of the GPU that they were measured on.
  std::vector<TrainingAttentionRow> rows;
};

TrainingAttention parse_training_attention(const JsonValue& json);

/// Of a GPU in calibration/data/training_attention; none if nothing was measured on it.
std::optional<TrainingAttention> read_training_attention(const std::string& gpu);

/// One measured matrix multiplication: C[m,n] = A[m,k] B[k,n].
struct GemmRow {
  std::int64_t m = 0, n = 0, k = 0;
  Seconds time;
};

/// The figures that a table's base constants were fitted with. They are units of a sort: the
/// constants absorb their errors, so a table is only of use together with them.
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
  double throttle = 0.0;            ///< thr: what long kernels lose to falling clocks.
  Seconds cast_overhead;            ///< tq: quantising the activations.
  double cast_efficiency = 0.0;     ///< ebq

  /// Whether the rows hold quantising A, as fp8 tables of a serving framework do.
  bool casts() const { return cast_efficiency > 0.0; }
};

/// How far a table's own rows are missed when each is predicted from all others (sim/cost/
/// kernel_error.hpp): predicted / measured - 1.
struct LeftOutError {
  std::int64_t rows = 0;
  double median = 0.0;  ///< Of its size.
  double p90 = 0.0;     ///< Of its size.
  double bias = 0.0;    ///< Its median: below 0 predictions are too fast.
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
  double lone = 0.0;
  std::optional<LeftOutError> left_out{};  ///< Over the rows of this head dimension.
};

struct AttentionTable {
  enum class Measures {
    serving_step,  ///< With the cache write and the launches around it.
    kernel,        ///< Nothing but the kernel.
  };

  std::string source;
  Measures measures = Measures::serving_step;
  MeasuredGpu measured_on;
  std::vector<AttentionBase> bases;  ///< By rising head dimension.
  std::vector<AttentionRow> rows;
};

/// What was measured on one kind of GPU: calibration/data/kernels/<gpu>.json.
struct KernelTables {
  std::string gpu;       ///< The GPU that the tables were measured on.
  std::string used_for;  ///< The GPU that they stand for: differs where none of its own exist.
  std::vector<GemmTable> gemm;
  std::optional<AttentionTable> attention;
  std::optional<TrainingAttention> training_attention;
  double sustained = 1.0;         ///< Training clock over benchmark clock, GEMM forward and dgrad.
  double wgrad_efficiency = 1.0;  ///< Of a wgrad GEMM relative to a forward one of its shape.
  double copy_efficiency = 0.85;  ///< Share of the memory bandwidth that streaming kernels reach.
  bool copy_measured = false;     ///< Whether that share was measured on this GPU.
  double attention_backward = 2.5;  ///< Backward over forward time of fused attention.
  double grouped_efficiency = 1.0;  ///< Of experts' products relative to what plain ones predict.
  /// Of the multiprocessors that a collective occupies: how many kernels beside it lose.
  double share_lost_beside = 1.0;
  /// Where these are from, by their keys in the file; the last two may be missing there.
  struct FactorSource {
    bool measured = false;
    std::string source;
  };
  std::map<std::string, FactorSource> factor_sources;
};

/// Tables for `gpu`, or nothing where neither it nor a stand-in (stand_ins.json) was measured.
/// Errors: a table file that says what cannot be meant, with its place.
std::optional<KernelTables> read_kernel_tables(const std::string& gpu);

/// The GPU whose tables those are: `gpu` itself, its stand-in, or "" where neither was measured.
std::string gpu_of_kernel_tables(const std::string& gpu);

/// One file of schema "orrery.kernels/1", stand-ins left out: `used_for` is `gpu`.
KernelTables parse_kernel_tables(const JsonValue& json);

}  // namespace orrery
