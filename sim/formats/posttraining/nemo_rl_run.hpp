#pragma once

#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// The loop (GRPO, DAPO, PPO) of a configuration of NeMo-RL and of those that it goes on from, with
/// the defaults of release 0.6 for absent settings. `answers.set` are settings by their paths:
/// "grpo.num_prompts_per_step". Errors (bad_input): no YAML; recipes of fine-tuning, preferences or
/// distillation; a setting that nothing prices, by its line.
ImportedRun import_nemo_rl_run(const RecipeFile& file, const RecipeAnswers& answers);

}  // namespace orrery
