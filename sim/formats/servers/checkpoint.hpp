#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/cluster/dtype.hpp"
#include "sim/model/model.hpp"
#include "sim/serving/checkpoint_formats.hpp"

namespace orrery {

/// Number formats that the name of a published checkpoint states.
struct CheckpointName {
  std::string model;  ///< Without the words for formats: "Qwen/Qwen3-32B" of "Qwen/Qwen3-32B-FP8".
  std::optional<Dtype> weights;  ///< Format of all linear layers.
};
CheckpointName read_checkpoint_name(const std::string& name);

/// The formats of a checkpoint by its name on Hugging Face's hub, its words, or those in which the
/// model is published. `model`: of the catalog; null: it is not.
CheckpointFormats formats_of_name(const std::string& name, const Model* model);

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
