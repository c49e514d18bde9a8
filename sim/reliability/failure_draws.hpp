#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/random.hpp"

namespace orrery {

/// Time within a replicate, in whole microseconds so that sums are exact; overflows after 292,000
/// years.
using Micros = std::int64_t;
inline constexpr double micros_per_day = 86400e6;

/// Uncertainty of a rate: the distribution of its factor in a replicate.
struct RateError {
  double events = 0.0;  ///< Counted events: Gamma(events + 1/2) / events. 0: not counted.
  double factor = 1.0;  ///< Without a count: lognormal, 9 in 10 within this factor.
};

/// The rates of failures and the times to repair.
struct FailureDistribution {
  std::vector<double> per_day;  ///< Rates of the whole job, by cause.
  RateError error;
  /// The rate of each month is Gamma with mean 1 and this standard deviation.
  double month_deviation = 0.0;
  Micros month = 0;  ///< Length of a month; 0: all are alike.
  /// Weights of 1, 2, ... failures that come and are repaired together. Empty: each comes alone.
  std::vector<double> batches;
  Micros before = 0;  ///< Time before the run in which its units failed already.
  /// Quantiles of the time to repair at 0, 1 / (n - 1), ..., 1: between two of them it is
  /// uniform in its logarithm. Positive and rising.
  std::vector<double> repair_us;

  double total_per_day() const;
  double mean_batch() const;  ///< Failures that come together, on average.
};

/// One failure with all its random properties. Each consumes equally many random numbers, so that
/// runs under other policies meet the same failures at the same times.
struct Failure {
  Micros at = 0;
  int cause = 0;
  double detection = 0.0;  ///< Position in [0, 1) within the range of detection times.
  double presence = 0.0;   ///< No effect if at most this share of nodes is present; in [0, 1).
  Micros repair = 0;
  /// Units of a whole fleet that are up when it comes, the job and its spares among them; it
  /// strikes any of them with equal chance. 0: failures are of the job alone.
  int fleet_up = 0;
  bool follows = false;  ///< It comes together with the one before.
};

/// The sequence of failures of one replicate.
class FailureSource {
 public:
  FailureSource(std::uint64_t seed, std::uint64_t replicate) : seed_{seed}, replicate_{replicate} {}
  virtual ~FailureSource() = default;
  virtual Failure next() = 0;  ///< Failures in the order of time.
  virtual double rate_factor() const { return 1.0; }
  /// Ends of the repairs of a fleet's units that are down at the beginning.
  virtual std::vector<Micros> down_at_start() const { return {}; }
  /// A stream of this replicate for other uses. Sources themselves use streams below 16.
  Random other_random(std::uint64_t stream) const { return Random{seed_, replicate_, 16 + stream}; }

 private:
  std::uint64_t seed_, replicate_;
};

/// Failures sampled from a distribution.
class FailureDraws final : public FailureSource {
 public:
  FailureDraws(const FailureDistribution& distribution, std::uint64_t seed,
               std::uint64_t replicate);
  Failure next() override;
  double rate_factor() const override { return rate_factor_; }

 private:
  void begin_month();
  void begin_batch();

  const FailureDistribution& distribution_;
  double total_per_us_;
  Random random_;        ///< Stream of failures.
  Random month_random_;  ///< Stream of months: a policy consumes as many as its run lasts.
  Random batch_random_;
  std::size_t left_of_batch_ = 0;
  Micros batch_repair_ = 0;
  double rate_factor_ = 1.0;
  double month_factor_ = 1.0;
  Micros month_ends_ = 0;
  double now_ = 0.0;
};

/// A sample of the factor of a rate.
double draw_rate_factor(const RateError& error, Random random);

/// A sample of Gamma(shape), whose mean is its shape, by Marsaglia and Tsang, ACM TOMS 26, 2000.
double draw_gamma(Random& random, double shape);

/// The quantile at `u` of repair_us as FailureDistribution has it.
Micros repair_at(std::span<const double> quantiles, double u);

}  // namespace orrery
