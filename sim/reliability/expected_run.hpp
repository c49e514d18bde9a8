#pragma once

#include "sim/core/units.hpp"

namespace orrery {

/// What a job does between two checkpoints.
struct CheckpointCycle {
  Seconds work;   ///< Of steps, tau.
  Seconds stall;  ///< For which the steps wait, d.
  Seconds write;  ///< After the stall, beside the next steps, until the checkpoint is safe, a.
};

/// Failures that are exponential and strike at any time, also while the job recovers: then it
/// recovers from the beginning.
struct Interruptions {
  double rate = 0.0;  ///< L, a second: 1 / MTTF.
  /// E[exp(-L D)] where D is the time from a failure to the next step: the chance that nothing
  /// fails in it. Of a fixed D: exp(-L D).
  double recovered = 1.0;
};

/// The chance that nothing fails in a time that is fixed, or uniform in [low, high].
double untouched(double rate, Seconds fixed);
double untouched(double rate, Seconds low, Seconds high);

/// Time that passes for each second of work, 1 / ETTR, exactly.
///
/// A checkpoint becomes safe every tau + d where nothing fails, and tau + d + a after a recovery.
/// With f = exp(-L (tau + d)), m = exp(-L (tau + d + a)) E[exp(-L D)] the mean time from a failure
/// to the next safe checkpoint is R = (1 - m)(1/L + R) = (1 - m) / (m L): a recovery and a cycle
/// pass untouched, or else it begins anew. From one safe checkpoint to the next it is
///
///     (1 - f)(1/L + R) = (1 - f) / (L m) = (exp(L (tau + d)) - 1) exp(L a) / (L E[exp(-L D)])
///
/// which with a = 0 and a fixed D is the known (exp(L (tau + d)) - 1) exp(L D) / L (Daly, FGCS
/// 22, 2006).
double time_over_work(const Interruptions& interruptions, const CheckpointCycle& cycle);

/// The same if nothing fails while the job recovers, D on average:
/// (exp(L (tau + d)) - 1)(1/L + D) exp(L a).
double time_over_work_safe_recovery(double rate, Seconds recovery, const CheckpointCycle& cycle);

/// The linear form of Kokolis et al., arXiv 2410.21680: ETTR = (1 - L (D + tau / 2)) / (1 + d /
/// tau). Below zero where L tau is large.
double linear_ettr(double rate, Seconds recovery, const CheckpointCycle& cycle);

/// 1 + W0(-exp(-1 - s)), s >= 0, with the upper branch of Lambert's W: w exp(w) is its argument.
double one_plus_lambert_w0(double s);

/// The work between two checkpoints that costs the least: where the derivative of
/// time_over_work() by tau is 0, (L tau - 1) exp(L tau - 1) = -exp(-L d - 1), so that
/// tau = (1 + W0(-exp(-L d - 1))) / L.
Seconds best_work(double rate, Seconds stall);
/// Its first term, sqrt(2 d / L) (Young, CACM 17, 1974), and Daly's series (FGCS 22, 2006, eq. 37).
Seconds young_work(double rate, Seconds stall);
Seconds daly_work(double rate, Seconds stall);

}  // namespace orrery
