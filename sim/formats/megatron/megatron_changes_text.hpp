#pragma once

#include <string>
#include <vector>

#include "sim/formats/megatron/megatron_arguments.hpp"
#include "sim/search/plan_steps.hpp"

namespace orrery {

/// What a script must change for the last of the plans, step by step: the keys of the plan that are
/// the reason, how long a step takes then and how much shorter that is, and the arguments.
std::string megatron_changes_text(const MegatronArguments& script,
                                  const std::vector<PlanStep>& steps);

}  // namespace orrery
