#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/cluster/dtype.hpp"
#include "sim/core/json_value.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// The formats of a checkpoint.
struct CheckpointFormats {
  Dtype weights = Dtype::bf16;  ///< Of linear layers but for those below.
  Dtype attention = Dtype::bf16;
  Dtype experts = Dtype::bf16;
  std::int64_t ends_16bit = 0;   ///< So many first and last layers stay in 16 bits.
  std::optional<Dtype> kv = {};  ///< What it names for keys and values.
  std::int64_t max_length = 0;   ///< Its own longest sequence, if not the model's.
  std::string said_by = {};      ///< "its name", "quantization_config"; "": nothing says it.

  bool is_quantised() const {
    return is_narrow(weights) || is_narrow(attention) || is_narrow(experts);
  }
};

/// The formats that a checkpoint's own files state: quantization_config of the model's document
/// (its config.json, or a file of the catalog), and hf_quant_config.json (NVIDIA ModelOpt), if it
/// has one. Nothing: it is not quantised. Errors (bad_input): a way to quantise that is not known.
std::optional<CheckpointFormats> formats_of_files(
    const Model& model, const std::optional<JsonValue>& hf_quant_config = {});

/// The formats in which the model is published, of 16 bits if its document names none.
CheckpointFormats published_formats(const Model& model);

/// The format of a scan's states by mamba_ssm_dtype or mamba_ssm_cache_dtype of the model's
/// document: fp32, or 16 bits where it names none. States with a decay a channel (KDA) are in fp32.
Dtype published_states(const Model& model);

}  // namespace orrery
