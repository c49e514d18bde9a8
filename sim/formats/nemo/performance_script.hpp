#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/json_value.hpp"
#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// A recipe as a command of Megatron-Bridge's performance scripts asks for it.
struct PerformanceQuestion {
  std::string recipe, gpu;     ///< "llama3_70b", "h100"
  std::string dtype = "bf16";  ///< "fp8_cs"
  std::string variant;         ///< "large_scale"; "": none.
  std::int64_t gpus = 0;
};

/// A recipe of the table.
struct PerformanceRecipe {
  std::string model;  ///< Catalog name.
  std::int64_t gpus = 0;
  JsonValue settings;                ///< Values by their paths in Megatron-Bridge's configuration.
  std::optional<JsonValue> layouts;  ///< Pipeline layouts, by stages x chunks.
};

/// The recipe of workloads/recipes/megatron-bridge.json for that many GPUs, else the one for the
/// most. Errors (bad_input), at `place`: the table has none of this name, GPU, format or variant.
PerformanceRecipe performance_recipe(const PerformanceQuestion& question, const Place& place);

/// A script that starts one of Megatron-Bridge's performance recipes.
struct PerformanceRun {
  Settings settings;  ///< The recipe's, changed by the script's flags.
  std::string model;  ///< Catalog name.
  std::int64_t gpus = 0;
  std::map<std::string, std::string> nccl;  ///< Variables of NCCL that the script sets.
  std::vector<std::string> notes;
};

/// The run of scripts/performance/setup_experiment.py (or run_script.py) of Megatron-Bridge that a
/// launch script starts: flags as argument_parser.py names them, overrides as Hydra does
/// (model.seq_length=4096), and the rest from workloads/recipes/megatron-bridge.json. Nothing: the
/// text starts neither. Errors (bad_input): a recipe, a GPU, a format or a task that the table
/// lacks; a flag that changes the model.
std::optional<PerformanceRun> read_performance_run(const std::string& text, const std::string& file,
                                                   const RecipeAnswers& answers);

}  // namespace orrery
