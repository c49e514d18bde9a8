#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/formats/megatron/megatron_arguments.hpp"

namespace orrery {

/// The model that Megatron-LM trains with these arguments, in our own format (orrery.model/1), all
/// of whose keys are written out. `notes` gets what was left out. Errors (bad_input): see
/// import_megatron_run.
nlohmann::ordered_json megatron_model(const MegatronArguments& arguments, const std::string& name,
                                      std::vector<std::string>& notes);

}  // namespace orrery
