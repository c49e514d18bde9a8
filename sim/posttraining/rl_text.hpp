#pragma once

#include <string>

#include "sim/posttraining/rl_step.hpp"

namespace orrery {

std::string rl_step_text(const RlStep& step);
/// orrery.post-result/1 (docs/reference/json.md).
std::string rl_step_json(const RlStep& step);

}  // namespace orrery
