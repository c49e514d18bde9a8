#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/formats/recipe/recipe.hpp"
#include "sim/model/model.hpp"

namespace orrery {

/// The model that torchtitan calls so in [model]: its name, without what stands before a dot
/// ("simple_fsdp.llama3"), and its flavor. Where the catalog has the shape it is the catalog's.
/// Nothing: it is not known. `name`: what to call a model that the catalog has not.
std::optional<Model> torchtitan_model(const std::string& family, const std::string& flavor,
                                      const std::string& name);

/// Flavors that are known of a family, in the order of their sizes; empty: it is not known.
std::vector<std::string> torchtitan_flavors(const std::string& family);

/// The run that a job file (TOML) of torchtitan describes, of the layouts of 2024 to February 2026,
/// when settings became Python. What it leaves out is what torchtitan's config/job_config.py makes
/// of it. `answers.set` are its settings as on torchtitan's command line: "training.seq_len".
/// Errors (bad_input): no TOML, or a setting that no plan can say, by its line.
ImportedRun import_torchtitan_run(const std::string& text, const std::string& file,
                                  const RecipeAnswers& answers);

}  // namespace orrery
