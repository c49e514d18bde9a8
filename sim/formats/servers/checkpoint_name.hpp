#pragma once

#include <optional>
#include <string>

#include "sim/serving/number_format.hpp"

namespace orrery {

/// What the name of a published checkpoint says of its number formats.
struct CheckpointName {
  std::string model;  ///< Without the words for formats: "Qwen/Qwen3-32B" of "Qwen/Qwen3-32B-FP8".
  std::optional<WeightFormat> weights;  ///< Of all linear layers.
};
CheckpointName read_checkpoint_name(const std::string& name);

/// The formats in which a model of the catalog is published where its name says none, as
/// DeepSeek-V3 in fp8_block.
struct PublishedFormats {
  WeightFormat weights = WeightFormat::bf16;
  WeightFormat experts = WeightFormat::bf16;
};
PublishedFormats published_formats(const std::string& catalog_name);

/// The word that read_checkpoint_name() reads as this format of all weights, whoever publishes it:
/// "-FP8-block".
const std::string& checkpoint_suffix(WeightFormat format);

}  // namespace orrery
