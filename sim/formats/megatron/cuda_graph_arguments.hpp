#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/formats/megatron/megatron_arguments.hpp"

namespace orrery {

/// What a run's arguments put in CUDA graphs (--cuda-graph-impl and --cuda-graph-scope, or the
/// older --enable-cuda-graph and --external-cuda-graph), as the plan's key `cuda_graphs` says it.
/// Nothing: no graphs, or none of what a plan can say. `notes` gains what is priced otherwise.
/// `experts`: the model has some.
std::optional<std::string> captured_in_graphs(const MegatronArguments& arguments, bool experts,
                                              std::vector<std::string>& notes);

}  // namespace orrery
