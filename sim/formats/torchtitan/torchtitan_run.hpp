#pragma once

#include <string>

#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// The run that a job file (TOML) of torchtitan describes, of the layouts of 2024 to February 2026,
/// when settings became Python. What it leaves out is what torchtitan's config/job_config.py makes
/// of it. `answers.set` are its settings as on torchtitan's command line: "training.seq_len".
/// Errors (bad_input): no TOML, or a setting that no plan can say, by its line.
ImportedRun import_torchtitan_run(const std::string& text, const std::string& file,
                                  const RecipeAnswers& answers);

}  // namespace orrery
