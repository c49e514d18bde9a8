#pragma once

#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// The loop that a script starts by verl (verl.trainer.main_ppo, recipe.dapo.main_dapo and the
/// one-step-off-policy trainer) with its settings on the command line, or that a configuration of
/// verl (YAML) describes, with the defaults of trainer/config of January 2026 for absent settings.
/// `answers.set`: settings by their paths, and variables of the script, which have no dot. Errors
/// (bad_input): no such command; a setting that nothing prices, by its line.
ImportedRun import_verl_run(const RecipeFile& file, const RecipeAnswers& answers);

}  // namespace orrery
