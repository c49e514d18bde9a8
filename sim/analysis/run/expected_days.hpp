#pragma once

#include "sim/analysis/run/training_run.hpp"

namespace orrery {

/// How long a run takes by the closed form, without a single draw: for the profile's rate, and for
/// the lowest and highest of nine in ten. What is not known of the rate and how months differ are
/// taken as logarithms that are independent: over m months, deviation^2 / m.
ChanceRange expected_days(const PreparedRun& run);

}  // namespace orrery
