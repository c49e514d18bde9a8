#pragma once

#include <string>
#include <vector>

#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// The model of model.model_config, by the defaults of nanotron's config/models_config.py, with the
/// vocabulary padded for `tp` ranks. `notes` gains what was left out. Errors (bad_input): layers
/// that nothing prices, a size that is missing.
Model nanotron_model(const Settings& settings, const std::string& name, std::int64_t tp,
                     std::vector<std::string>& notes);

/// The run that a configuration (YAML) of nanotron describes, with config/config.py's defaults for
/// absent settings. `answers.set` are settings by their paths: "tokens.micro_batch_size". Errors
/// (bad_input): no YAML, or a setting that no plan can say, by its line.
ImportedRun import_nanotron_run(const std::string& text, const std::string& file,
                                const RecipeAnswers& answers);

}  // namespace orrery
