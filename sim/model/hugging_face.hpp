#pragma once

#include <string>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// Whether `json` looks like a Hugging Face config.json rather than our own format.
bool is_hugging_face(const JsonValue& json);

/// The decoder-only language model that a config.json describes (of a multimodal one, its text
/// part). Takes transformers' spellings of version 4 and 5. The result has no name.
/// Errors: an unknown model_type; a missing key; a key that is not known to leave shapes alone.
/// Source: the configuration classes of huggingface/transformers, src/transformers/models.
Model parse_hugging_face(const JsonValue& json);

/// The model_type values that parse_hugging_face understands.
const std::vector<std::string>& hugging_face_types();

}  // namespace orrery
