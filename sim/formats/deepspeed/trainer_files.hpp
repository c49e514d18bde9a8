#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// The contents of a run's files, distinguished by their keys. An absent file is empty.
struct TrainerFiles {
  Settings trainer;     ///< Arguments of the training program, of Hugging Face's names.
  Settings engine;      ///< DeepSpeed's configuration (JSON).
  Settings accelerate;  ///< `accelerate config`'s file (YAML).
  std::string program;  ///< "run_clm.py"; "": no script starts one.
  std::optional<std::int64_t> gpus;
  std::map<std::string, std::string> nccl;  ///< Variables of NCCL that the script sets.
  std::vector<std::string> notes;
};

/// Reads a launch script (of deepspeed, torchrun, accelerate launch, ...), or files of settings in
/// JSON or YAML, in any order. A configuration that the script or the settings name is read where
/// it lies, if it is not among the files. Errors (bad_input): two files of one kind, a named
/// configuration that is not there, no YAML or JSON, a script that starts no training.
TrainerFiles read_trainer_files(const std::vector<RecipeFile>& files, const RecipeAnswers& answers);

}  // namespace orrery
