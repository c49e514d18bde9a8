#pragma once

#include <nlohmann/json.hpp>

#include "sim/plan/scenario.hpp"

namespace orrery {

/// What a scenario was made of: {"models": {NAME: ...}, "systems", "software", "calibrations",
/// "schedules"}, each in the format of the file that it was read from. What was not read is left
/// out.
nlohmann::ordered_json inputs_json(const Scenario& scenario);

}  // namespace orrery
