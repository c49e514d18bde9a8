#pragma once

#include <vector>

#include "calibration/host/case.hpp"
#include "sim/layers/pass_cost.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// What of shapes_of(scenario) was not measured on this GPU, heaviest first: what to measure next
/// so that the estimate rests on measurements. A shape's weight is the time that one rank of
/// `stage` spends on it in a step, in seconds, hidden or not. A product whose row is in the tables
/// counts as measured although training slows it down by a factor.
std::vector<calibration::Case> missing_shapes(const Scenario& scenario, const KernelModel& kernels,
                                              const Pricer& pricer, int stage);

}  // namespace orrery
