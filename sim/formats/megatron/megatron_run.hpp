#pragma once

#include <optional>
#include <string>

#include "sim/formats/megatron/megatron_arguments.hpp"
#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// What a run of Megatron-LM with these arguments trains, and how it is spread. What an argument
/// that is not given means is what arguments.py of 2025 makes of it, written out, so that no
/// default of ours fills it in. `name`: what to call the model; `model`: one that stands in for
/// that of the arguments.
/// Errors (bad_input): an argument is missing, no number, or says what a plan cannot.
ImportedRun import_megatron_run(const MegatronArguments& arguments, const std::string& name,
                                const std::optional<Model>& model = std::nullopt);

}  // namespace orrery
