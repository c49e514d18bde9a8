#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/formats/recipe/recipe.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// A model of torchtitan's [model]: its name, without a prefix before a dot
/// ("simple_fsdp.llama3"), and its flavor. A model of the same shape in the catalog is preferred.
/// Nothing: unknown. `name`: the name of a model that the catalog lacks.
std::optional<Model> torchtitan_model(const std::string& family, const std::string& flavor,
                                      const std::string& name);

/// Flavors that are known of a family, in the order of their sizes; empty: it is not known.
std::vector<std::string> torchtitan_flavors(const std::string& family);

/// The run that a job file (TOML) of torchtitan describes, of the layouts of 2024 to February 2026,
/// when settings became Python. Absent settings have the defaults of torchtitan's
/// config/job_config.py. `answers.set` are its settings as on torchtitan's command line:
/// "training.seq_len". Errors (bad_input): no TOML, or a setting that no plan can say, by its line.
ImportedRun import_torchtitan_run(const std::string& text, const std::string& file,
                                  const RecipeAnswers& answers);

}  // namespace orrery
