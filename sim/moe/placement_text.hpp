#pragma once

#include <string>

#include "sim/moe/expert_placement.hpp"

namespace orrery {

/// Reports the gain of a placement by layer: the busiest rank over the mean, before and after.
std::string placement_text(const RoutingTrace& trace, const PlacementRequest& request,
                           const PlacementGain& gain);

/// The same with the slots of every layer, as orrery.placement/1 (docs/explanation/moe.md).
std::string placement_json(const RoutingTrace& trace, const PlacementRequest& request,
                           const PlacementGain& gain);

}  // namespace orrery
