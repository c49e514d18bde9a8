#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/core/json_value.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// Number formats that the name of a published checkpoint states.
struct CheckpointName {
  std::string model;  ///< Without the words for formats: "Qwen/Qwen3-32B" of "Qwen/Qwen3-32B-FP8".
  std::optional<Dtype> weights;  ///< Format of all linear layers.
};
CheckpointName read_checkpoint_name(const std::string& name);

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

/// The formats in which a model of the catalog is published where its name says none, as
/// DeepSeek-V3 in fp8_block.
CheckpointFormats published_formats(const std::string& catalog_name);

/// The formats of a checkpoint by its name on Hugging Face's hub, its words, or the model's usual
/// ones. `catalog_name`: the model's; "": it is not of the catalog.
CheckpointFormats formats_of_name(const std::string& name, const std::string& catalog_name);

/// The formats that a checkpoint's own files state: quantization_config of its config.json, and
/// hf_quant_config.json (NVIDIA ModelOpt), if it has one. Nothing: it is not quantised.
/// Errors (bad_input): a way to quantise that is not known.
std::optional<CheckpointFormats> formats_of_files(const Model& model,
                                                  const std::optional<JsonValue>& hf_quant_config);

/// The words of vLLM and SGLang, and of publishers of checkpoints, for a format of all weights
/// (vllm/model_executor/layers/quantization, sglang/srt/layers/quantization).
struct ServedFormat {
  Dtype format;
  std::string suffix;  ///< The end of a checkpoint's name, as read_checkpoint_name() reads it.
  std::vector<std::string> quantizations = {};  ///< Values of --quantization that mean it.
  bool when_loaded = false;       ///< The first of these makes it of 16 bits as they are loaded.
  std::vector<Dtype> finer = {};  ///< Checkpoints in these are meant by the same values.
};
const std::vector<ServedFormat>& served_formats();

}  // namespace orrery
