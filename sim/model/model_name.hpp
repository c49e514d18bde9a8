#pragma once

#include <optional>
#include <string>

namespace orrery {

/// The model of the catalog that a name of Hugging Face's hub or of a folder stands for:
/// "llama3.1-8b" of "meta-llama/Llama-3.1-8B-Instruct". What follows the size may only be words
/// that change no shape, such as a tuning or a date. Nothing: there is none.
std::optional<std::string> catalog_model(const std::string& name);

}  // namespace orrery
