#pragma once

#include <string>

#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// The run that a configuration (YAML) of nanotron describes, with what config/config.py makes of
/// settings that are not there. `answers.set` are settings by their paths:
/// "tokens.micro_batch_size". Errors (bad_input): no YAML, or a setting that no plan can say, by
/// its line.
ImportedRun import_nanotron_run(const std::string& text, const std::string& file,
                                const RecipeAnswers& answers);

}  // namespace orrery
