#pragma once

#include <string>
#include <vector>

#include "sim/plan/scenario.hpp"

namespace orrery {

/// A plan and its model as arguments of Megatron-LM's pretrain_gpt.py.
struct MegatronFlags {
  std::vector<std::string> flags;     ///< "--tensor-model-parallel-size 8", one a flag.
  std::vector<std::string> left_out;  ///< Parts of the plan or model that no flag says, and why.
};

/// Names and values as Megatron-LM's arguments.py of 2025 has them. Only sizes and what differs
/// from their defaults are written. Layers that do not divide evenly become a
/// --pipeline-model-parallel-layout.
MegatronFlags megatron_flags(const Scenario& scenario);

/// One flag a line, as a shell takes them.
std::string megatron_text(const MegatronFlags& flags);

}  // namespace orrery
