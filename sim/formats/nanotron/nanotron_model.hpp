#pragma once

#include <string>
#include <vector>

#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// The model of model.model_config, by the defaults of nanotron's config/models_config.py, with the
/// vocabulary padded for `tp` ranks. `notes` gets what was left out. Errors (bad_input): layers
/// that nothing prices, a size that is missing.
Model nanotron_model(const Settings& settings, const std::string& name, std::int64_t tp,
                     std::vector<std::string>& notes);

}  // namespace orrery
