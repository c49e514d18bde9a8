#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/dtype.hpp"
#include "sim/core/json_value.hpp"

namespace orrery {

enum class AttentionLibrary { cudnn, flash_attention_2 };
const std::vector<std::string>& attention_library_names();  ///< In the enumerators' order.

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

}  // namespace orrery
