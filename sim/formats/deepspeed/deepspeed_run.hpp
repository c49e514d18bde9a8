#pragma once

#include <vector>

#include "sim/formats/deepspeed/trainer_files.hpp"
#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// Refuses what is not supported: adapters (LoRA), encoders, preferences and rewards,
/// weights of four bits. Errors (bad_input): the program or the setting.
void refuse_unpriced_training(const TrainerFiles& files);

/// The run that files of DeepSpeed, of Hugging Face's Trainer or of accelerate describe: a launch
/// script, arguments (JSON, YAML), configurations (see read_trainer_files). Absent settings have
/// the defaults of TrainingArguments and DeepSpeed's runtime/config.py. `answers.set` are variables
/// of the script, arguments ("bf16"), or settings of DeepSpeed ("zero_optimization.stage").
/// Errors (bad_input): see read_trainer_files; a model that is not known; something that no plan
/// can say.
ImportedRun import_deepspeed_run(const std::vector<RecipeFile>& files,
                                 const RecipeAnswers& answers);

}  // namespace orrery
