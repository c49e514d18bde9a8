#pragma once

#include <vector>

#include "sim/plan/scenario.hpp"

namespace orrery {

/// Ways to cut a plan's layers that give the first and the last virtual stage, which also hold the
/// embedding and the head, up to two more or four fewer than all others, which have equally many.
/// Empty where there is one stage.
std::vector<StageLayers> splits_beside(const Scenario& scenario);

}  // namespace orrery
