#pragma once

#include <string>
#include <vector>

#include "sim/plan/plan.hpp"

namespace orrery {

/// "tp 8 x pp 8 x dp 16", "1f1b", "96 micro-batches of 1 x 2,048 tokens", ...: whatever tells this
/// plan from any other that has another answer.
std::vector<std::string> plan_items(const Plan& plan);

}  // namespace orrery
