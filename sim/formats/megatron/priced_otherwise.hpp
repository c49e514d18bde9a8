#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/formats/megatron/megatron_arguments.hpp"

namespace orrery {

/// What the run does and the estimate does not, for arguments that change time or memory: a
/// sentence each.
std::vector<std::string> priced_otherwise(const MegatronArguments& arguments);

/// An argument, by its name in arguments.py, that changes neither time nor memory of a step: data,
/// checkpoints, logs, learning rates, what experts are chosen by.
bool changes_nothing(std::string_view name);

}  // namespace orrery
