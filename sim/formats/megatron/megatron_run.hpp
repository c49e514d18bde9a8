#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/formats/megatron/megatron_arguments.hpp"
#include "sim/formats/recipe/recipe.hpp"

namespace orrery {

/// Arguments that change time or memory in a way that the estimate does not model: a sentence each.
std::vector<std::string> priced_otherwise(const MegatronArguments& arguments);

/// An argument, by its name in arguments.py, that changes neither time nor memory of a step: data,
/// checkpoints, logs, learning rates, the choice of experts.
bool changes_nothing(std::string_view name);

/// An argument of a list that was printed with all defaults: it changes nothing, is no switch that
/// is on, or is on wherever nothing is given.
bool is_printed_default(std::string_view name, std::string_view value);

/// The parts of a step in CUDA graphs (--cuda-graph-impl and --cuda-graph-scope, or the older
/// --enable-cuda-graph and --external-cuda-graph), as the plan's key `cuda_graphs` says it.
/// Nothing: no graphs, or none that a plan can say. `notes` gains what is priced otherwise.
/// `experts`: the model has some.
std::optional<std::string> captured_in_graphs(const MegatronArguments& arguments, bool experts,
                                              std::vector<std::string>& notes);

/// The training run and parallelism of Megatron-LM with these arguments. An absent argument has the
/// default of arguments.py of 2025, written out, so that no default of ours fills it in. `name`:
/// the model's name; `model`: replaces that of the arguments. Errors (bad_input): an argument is
/// missing, no number, or says what a plan cannot.
ImportedRun import_megatron_run(const MegatronArguments& arguments, const std::string& name,
                                const std::optional<Model>& model = std::nullopt);

}  // namespace orrery
