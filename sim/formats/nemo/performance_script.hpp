#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// What a script says that starts one of Megatron-Bridge's performance recipes.
struct PerformanceRun {
  Settings settings;  ///< The recipe's, changed by the script's flags.
  std::string model;  ///< In the catalog.
  std::int64_t gpus = 0;
  std::map<std::string, std::string> nccl;  ///< Variables of NCCL that the script sets.
  std::vector<std::string> notes;
};

/// The run of scripts/performance/setup_experiment.py (or run_script.py) of Megatron-Bridge that a
/// launch script starts: flags as argument_parser.py names them, overrides as Hydra does
/// (model.seq_length=4096), and what they leave open as workloads/recipes/megatron-bridge.json has
/// it. Nothing: the text starts neither. Errors (bad_input): a recipe, a GPU, a format or a task
/// that the table lacks; a flag that changes the model.
std::optional<PerformanceRun> read_performance_run(const std::string& text, const std::string& file,
                                                   const RecipeAnswers& answers);

}  // namespace orrery
