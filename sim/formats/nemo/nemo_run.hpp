#pragma once

#include <string>

#include "sim/formats/megatron/megatron_arguments.hpp"
#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// Settings of NeMo or Megatron-Bridge as arguments of Megatron-LM, whose engine both start:
/// layouts of NeMo 1 (trainer, model, optim), of NeMo 2 (trainer.strategy, model.config, data) and
/// of Megatron-Bridge's ConfigContainer (model, train, ddp, mixed_precision, comm_overlap). `gpus`:
/// of the run, if no setting says it; `nccl`: variables of its environment. Errors (bad_input): a
/// value that has no meaning, by its line; what is not supported.
MegatronArguments nemo_arguments(const Settings& settings, std::optional<std::int64_t> gpus,
                                 const std::map<std::string, std::string>& nccl = {});

/// The run that a recipe of NeMo 1 or 2 or of Megatron-Bridge describes: its YAML, or a log of
/// Megatron-Bridge, which prints its configuration ("Task Configuration"). `answers.set` are its
/// settings as on their command lines: "model.tensor_model_parallel_size". Errors (bad_input): no
/// YAML; a setting that no plan can say, by its line.
ImportedRun import_nemo_run(const std::string& text, const std::string& file,
                            const RecipeAnswers& answers);

}  // namespace orrery
