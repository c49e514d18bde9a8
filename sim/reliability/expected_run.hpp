#pragma once

#include <span>
#include <vector>

#include "sim/core/units.hpp"
#include "sim/reliability/replicate_setup.hpp"

namespace orrery {

/// One cycle of a job: work, then a checkpoint.
struct CheckpointCycle {
  Seconds work;   ///< Time of steps, tau.
  Seconds stall;  ///< Time that the steps wait, d.
  Seconds write;  ///< Time of the write after the stall, overlapped with steps, a.
};

/// Exponential failures that strike at any time, also during a recovery, which then starts again.
struct Interruptions {
  double rate = 0.0;  ///< L, a second: 1 / MTTF.
  /// E[exp(-L D)] where D is the time from a failure to the next step: the chance that nothing
  /// fails in it. A fixed D gives exp(-L D).
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

/// The mean time that a repair spends below `limit`: the integral of P(repair > u) over [0, limit];
/// all of it for an infinite one. `quantiles` as FailureDistribution has them, all in microseconds.
double repair_within(std::span<const double> quantiles, double limit);
/// P(repair > age).
double repair_longer(std::span<const double> quantiles, double age);

/// P(at most `most`) of a Poisson distribution; 0 below 0.
double poisson_at_most(int most, double mean);

/// P(at most `most` islands are lost) where units of the racks are down as Poisson, `mean` on
/// average, and `more` of them for certain: 0 or 1. Racks are alike and independent.
double islands_lost_at_most(const Racks& racks, int most, double mean, int more = 0);
/// The islands lost for each unit that is down, on average.
double islands_lost_per_unit(const Racks& racks, double mean);

/// The expected share of a run of `length` in which a job that needs all its units steps, in closed
/// form. Failures have a constant rate, also while the job is stopped; setup.spares units stand by.
///
/// Units in repair are an infinite-server queue. At t the job steps if nothing failed for the time
/// that the last failure's detection D and the start s take, and no more than the spares were in
/// repair at t - s: since then units only came back. The last failure has cause c and age s + x. F
/// is the chance that a repair is longer, r(x, t) the mean number of units that failed before it
/// and are still in repair, and Q_0, Q_1 the chance that spares make up for them and for one more
/// (islands_lost_at_most(); for islands of one unit the Poisson distribution function at `spares`
/// and at spares - 1):
///
///     A(t) = exp(-L t) + sum_c L_c int_0^(t-s) exp(-L (s + x)) P(D_c <= x) P_c(x) dx,
///     P_c(x) = Q_0(r), or (1 - F(x)) Q_0(r) + F(x) Q_1(r) if c replaces,
///     r(x, t) = L_r int_x^(t-s) F
///
/// It is exact for every distribution of repairs. A stretch of steps ends with a failure, whatever
/// was before it, so that retained steps are A times what time_over_work() has in place of
/// Interruptions::recovered. `per_us`: rate of each cause; planned ones only take units away.
double stepping_share(const ReplicateSetup& setup, std::span<const double> per_us,
                      std::span<const double> repair_us, Micros start, double length_us);

/// A state of an elastic job: a number of islands is missing.
struct AwayLevel {
  double share = 0.0;    ///< Share of time in which that many islands are missing.
  int away = 0;          ///< Groups.
  double present = 1.0;  ///< Share of groups present, and so of the failure rate.
  double returns = 0.0;  ///< Groups that rejoin in a microsecond of this state.
};

/// The mean shares of a run of `length` in which 0, 1, ... islands are missing, beyond the spares;
/// the run begins with all units. In an infinite-server queue with arrival rates that depend on the
/// state, pi_k ~ prod_(j<k) rate_j m / (j + 1) for every distribution of repairs; at t the mean m
/// is that of repairs within t. Only present units fail. Islands of several units are lost at the
/// rate of their units times islands_lost_per_unit(). `per_us`: rate of causes that replace, of the
/// whole job.
std::vector<AwayLevel> away_levels(const ReplicateSetup& setup, double per_us,
                                   std::span<const double> repair_us, double length_us);

/// Shares of a run's time under a policy.
struct PolicyShares {
  double ettr = 1.0;     ///< Retained steps, as fast as they were; what writes slow is lost.
  double goodput = 1.0;  ///< Retained steps, at the speed of the whole cluster.
};

/// The closed form for a run of one phase (the setup's first) and one tier at constant rates, with
/// any number of spares, elastic or not. `work_us`: its steps without interruption.
///
/// A job that needs all its units: stepping_share() over what time_over_work() loses. An elastic
/// one: each state of away_levels() is a run of its own with its rate, step and batch, in which a
/// unit that comes back stops all for the time of a regroup; a failure that leaves what was
/// computed (replicas_hold_all) costs its recovery and half a step. Two failures that overlap in
/// different states are counted as if in one, an error of second order in the rate times the
/// recovery.
PolicyShares policy_shares(const ReplicateSetup& setup, std::span<const double> per_day,
                           std::span<const double> repair_us, double work_us);

}  // namespace orrery
