#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/formats/megatron/megatron_arguments.hpp"
#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// What the run does and the estimate does not, for arguments that change time or memory: a
/// sentence each.
std::vector<std::string> priced_otherwise(const MegatronArguments& arguments);

/// An argument, by its name in arguments.py, that changes neither time nor memory of a step: data,
/// checkpoints, logs, learning rates, what experts are chosen by.
bool changes_nothing(std::string_view name);

/// What a run's arguments put in CUDA graphs (--cuda-graph-impl and --cuda-graph-scope, or the
/// older --enable-cuda-graph and --external-cuda-graph), as the plan's key `cuda_graphs` says it.
/// Nothing: no graphs, or none of what a plan can say. `notes` gains what is priced otherwise.
/// `experts`: the model has some.
std::optional<std::string> captured_in_graphs(const MegatronArguments& arguments, bool experts,
                                              std::vector<std::string>& notes);

/// What a run of Megatron-LM with these arguments trains, and how it is spread. What an argument
/// that is not given means is what arguments.py of 2025 makes of it, written out, so that no
/// default of ours fills it in. `name`: what to call the model; `model`: one that stands in for
/// that of the arguments.
/// Errors (bad_input): an argument is missing, no number, or says what a plan cannot.
ImportedRun import_megatron_run(const MegatronArguments& arguments, const std::string& name,
                                const std::optional<Model>& model = std::nullopt);

}  // namespace orrery
