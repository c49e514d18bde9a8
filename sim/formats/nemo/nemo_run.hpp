#pragma once

#include <string>

#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// The run that a recipe of NeMo 1 or 2 or of Megatron-Bridge describes: its YAML, or a log of
/// Megatron-Bridge, which prints its configuration ("Task Configuration"). `answers.set` are its
/// settings as on their command lines: "model.tensor_model_parallel_size". Errors (bad_input): no
/// YAML; a setting that no plan can say, by its line.
ImportedRun import_nemo_run(const std::string& text, const std::string& file,
                            const RecipeAnswers& answers);

}  // namespace orrery
