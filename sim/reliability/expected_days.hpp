#pragma once

#include "sim/reliability/expected_away.hpp"
#include "sim/reliability/training_run.hpp"

namespace orrery {

/// What becomes of a run's time by the closed form, with any number of spares, elastic or not,
/// `factor` times as many failures: policy_shares() of the last tier, or expected_ettr() where a
/// spare is always at hand. Rates do not change, and no GPU becomes slow.
PolicyShares expected_shares(const PreparedRun& run, double factor = 1.0);

/// Whether it speaks of a policy: one tier, failures that are drawn, each alone unless a spare is
/// always at hand.
bool has_expected_shares(const RunQuestion& question);

/// How long a run takes by the closed form, without a single draw: for the profile's rate, and for
/// the lowest and highest of nine in ten. What is not known of the rate and how months differ are
/// taken as logarithms that are independent: over m months, deviation^2 / m.
ChanceRange expected_days(const PreparedRun& run);

}  // namespace orrery
