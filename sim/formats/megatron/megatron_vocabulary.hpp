#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/formats/megatron/megatron_arguments.hpp"

namespace orrery {

/// Rows of the token table: --padded-vocab-size, or a vocabulary padded as Megatron-LM pads it, so
/// that every tensor-parallel rank has a multiple of --make-vocab-size-divisible-by. The vocabulary
/// is --vocab-size; else the tokenizer's by its type or the model that it is of; else that of the
/// catalog's model of the same shape. `notes` gets where it is from unless the file says it.
/// Errors (bad_input): nothing says it.
std::int64_t padded_vocabulary(const MegatronArguments& arguments, std::vector<std::string>& notes);

}  // namespace orrery
