#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// The contents of a run's files, distinguished by their keys. An absent file is empty.
struct TrainerFiles {
  Settings trainer;             ///< Arguments of the training program, of Hugging Face's names.
  Settings engine;              ///< DeepSpeed's configuration (JSON).
  Settings accelerate;          ///< `accelerate config`'s file (YAML).
  Settings adapter;             ///< PEFT's adapter_config.json.
  std::string program;          ///< "run_clm.py"; "": no script starts one.
  std::string accelerate_file;  ///< What `accelerate launch --config_file` names; "": nothing.
  std::optional<std::int64_t> gpus;
  std::map<std::string, std::string> nccl;  ///< Variables of NCCL that the script sets.
  std::vector<std::string> notes;
};

/// Reads a launch script (of deepspeed, torchrun, accelerate launch, ...), or files of settings in
/// JSON or YAML, in any order. Errors (bad_input): two files of one kind, no YAML or JSON, a script
/// that starts no training.
TrainerFiles read_trainer_files(const std::vector<RecipeFile>& files, const RecipeAnswers& answers);

/// Adds the configurations that `all` names and does not have yet, where they lie seen from the
/// file `by`. Errors (bad_input): one is not there, no YAML or JSON.
void read_named_files(TrainerFiles& all, const std::string& by, const RecipeAnswers& answers);

}  // namespace orrery
