#pragma once

#include <string>

#include "sim/formats/recipe/recipe.hpp"
#include "sim/formats/settings/settings.hpp"

namespace orrery {

/// A YAML configuration with those that it names under `defaults`, from whose folder their paths
/// count: maps are merged, its own values win, and `_override_: true` replaces a map as a whole.
/// The user's answers win over all; references are resolved (references.hpp).
/// Errors (bad_input): no YAML; a file that is not there; files that name each other.
Settings read_layered_settings(const RecipeFile& file, const RecipeAnswers& answers);

}  // namespace orrery
