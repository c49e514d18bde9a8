#pragma once

#include "sim/input/scenario/scenario.hpp"

namespace orrery {

/// A scenario's own plan as a request, for changing a key of it. `dp` is left open, so that it
/// follows from the other degrees, and so is what makes no difference to the plan as it is.
PlanRequest plan_again(const Scenario& scenario);

}  // namespace orrery
