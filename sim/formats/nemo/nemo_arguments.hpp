#pragma once

#include "sim/formats/megatron/megatron_arguments.hpp"
#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// What settings of NeMo or Megatron-Bridge mean as arguments of Megatron-LM, whose engine both
/// start: layouts of NeMo 1 (trainer, model, optim), of NeMo 2 (trainer.strategy, model.config,
/// data) and of Megatron-Bridge's ConfigContainer (model, train, ddp, mixed_precision,
/// comm_overlap). `gpus`: of the run, where nothing says it; `nccl`: variables of its environment.
/// Errors (bad_input): a value that has no meaning, by its line; what nothing prices.
MegatronArguments nemo_arguments(const Settings& settings, std::optional<std::int64_t> gpus,
                                 const std::map<std::string, std::string>& nccl = {});

}  // namespace orrery
