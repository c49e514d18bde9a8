#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace orrery {

/// The model of the catalog for a name of Hugging Face's hub or of a folder: "llama3.1-8b" for
/// "meta-llama/Llama-3.1-8B-Instruct". Only words that change no shape, such as a tuning or a date,
/// may follow the size. Empty if there is none.
std::optional<std::string> catalog_model(const std::string& name);

/// The longest sequence of a checkpoint of the hub where it is not that of the model of its shape
/// (max_position_embeddings of its config.json); empty: it is the model's.
std::optional<std::int64_t> longest_of_name(const std::string& name);

/// The name says that the weights are of a format below 16 bits, which its shape does not.
bool names_weight_format(const std::string& name);

/// "organisation/name": a name of the hub, unless a file lies there.
bool is_hub_name(const std::string& name);

/// "the nearest is 'qwen3-8b'; " for a name that the catalog does not have. Empty if none is near.
std::string nearest_catalog_models(const std::string& name);

}  // namespace orrery
