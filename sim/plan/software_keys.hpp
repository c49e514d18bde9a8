#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/plan/software.hpp"

namespace orrery {

/// One key of a software's file: the member that it fills, and what may be written.
struct SoftwareKey {
  /// Of the file, with what has been read of it so far.
  using Condition = bool (*)(const JsonValue& file, const Software& so_far);

  std::string name;
  /// Errors (bad_input): no source, another type or unit, out of range.
  std::function<void(Software&, const JsonValue&)> read;
  bool required = true;
  Condition applies = nullptr;  ///< Null: always. Else the key is required where this holds.
};

/// All that have a source, in the order in which they are read.
const std::vector<SoftwareKey>& software_keys();

/// Reads {"granularity": ..., "gemm_efficiency": ...}, each with its source.
Fp8Scaling read_fp8_scaling(const JsonValue& json);
/// Reads {"fused_attention": ..., "logit_forward_bytes": ...}, each with its source. `shards`:
/// software that shards weights says what it copies then.
Fp32Training read_fp32_training(const JsonValue& json, bool shards);

}  // namespace orrery
