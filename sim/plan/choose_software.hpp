#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/plan/scenario.hpp"

namespace orrery {

/// The software that a plan which names none is taken to run on: eager Megatron of 2021 for fp16 on
/// Volta, which has no other 16-bit format and no fused attention of today, else Megatron-Core.
std::string default_software(const PlanRequest& request, const System& system);

/// The catalog without `like`, the nearest first: software that differs from it in the fewest
/// figures; of equals in the order of names.
std::vector<Software> software_near(const Software& like);

/// make_scenario() for those who ask often and keep what they have read: `software` is what the
/// request names or the default, and `near` gives software_near(software) where it is needed.
Scenario make_scenario(const Model& model, const System& system, const Software& software,
                       const std::function<const std::vector<Software>&()>& near,
                       const PlanRequest& request, int gpus, const Place& at);

}  // namespace orrery
