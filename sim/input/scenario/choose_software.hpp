#pragma once

#include <string>
#include <vector>

#include "sim/input/scenario/scenario.hpp"

namespace orrery {

/// The software that a plan which names none is taken to run on: eager Megatron of 2021 for fp16 on
/// Volta, which has no other 16-bit format and no fused attention of today, else Megatron-Core.
std::string default_software(const PlanRequest& request, const System& system);

/// The catalog without `like`, the nearest first: software that differs from it in the fewest
/// figures; of equals in the order of names.
std::vector<Software> software_near(const Software& like);

}  // namespace orrery
