#pragma once

#include <map>
#include <string>
#include <vector>

#include "sim/formats/megatron/megatron_arguments.hpp"
#include "sim/formats/shell/shell_values.hpp"

namespace orrery {

/// The task of `megatron TASK`, the launcher of ms-swift: "sft", "pt", "rlhf", "export". Empty: the
/// command is not ms-swift's.
std::string swift_task(const std::vector<ShellWord>& command);

/// Arguments of ms-swift, under Megatron-LM's names with underscores and values, as Megatron-LM's:
/// "true" has no word, the length of sequences is seq_length, and its own defaults are written out
/// (swift/megatron/arguments/megatron_args.py). Returns the name of the model, which is no argument
/// of Megatron-LM; `notes` gains a sentence on packed sequences. Errors (bad_input): another task
/// than training, adapters, a part of the weights; no model or length.
std::string take_swift_arguments(const std::string& task, const Place& place,
                                 std::map<std::string, MegatronArguments::Value>& values,
                                 std::vector<std::string>& notes);

}  // namespace orrery
