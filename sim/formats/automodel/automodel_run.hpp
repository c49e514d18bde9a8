#pragma once

#include <string>

#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// The run that a recipe (YAML) of NeMo AutoModel describes, which trains all weights of a model to
/// predict the next token, with the defaults of nemo_automodel/components for absent settings.
/// `answers.set` are settings by their paths: "step_scheduler.local_batch_size". Errors
/// (bad_input): no YAML; a recipe of another kind, adapters among them; a setting that no plan can
/// say, by its line.
ImportedRun import_automodel_run(const std::string& text, const std::string& file,
                                 const RecipeAnswers& answers);

}  // namespace orrery
