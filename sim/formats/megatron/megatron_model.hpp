#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
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

/// The model that Megatron-LM trains with these arguments, in our own format (orrery.model/1), all
/// of whose keys are written out. `notes` gains what was left out. Errors (bad_input): see
/// import_megatron_run.
nlohmann::ordered_json megatron_model(const MegatronArguments& arguments, const std::string& name,
                                      std::vector<std::string>& notes);

/// Refuses a run of a model, or of another kind, that is not supported, naming it: an
/// encoder, Mamba layers, linear attention, images, generation of text, ... Errors (bad_input): the
/// program or the argument.
void refuse_unpriced(const MegatronArguments& arguments);

}  // namespace orrery
