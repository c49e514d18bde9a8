#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/core/random.hpp"

namespace orrery {

/// Times of a walk: whole microseconds, so that they add up exactly. 2^63 of them are 292,000
/// years.
using Micros = std::int64_t;
inline constexpr double micros_per_day = 86400e6;

/// How well a rate is known: what it is multiplied by in a replicate.
struct RateError {
  double events = 0.0;  ///< Counted: Gamma(events + 1/2) / events. 0: not counted.
  double factor = 1.0;  ///< Where nothing was counted: lognormal, 9 in 10 within this factor.
};

/// How often failures come, and how long what failed stays away.
struct FailureLaw {
  std::vector<double> per_day;  ///< Of the whole job, by cause.
  RateError error;
  /// The rate of each month is Gamma with mean 1 and this standard deviation.
  double month_deviation = 0.0;
  Micros month = 0;  ///< How long a month is; 0: they are all alike.
  /// How many of 1, 2, ... failures come together, as weights, and are repaired together. Empty:
  /// each comes alone.
  std::vector<double> batches;
  Micros before = 0;  ///< So long before a run its units failed already.
  /// Quantiles of the time to repair at 0, 1 / (n - 1), ..., 1: between two of them it is
  /// uniform in its logarithm. Positive and rising.
  std::vector<double> repair_us;

  double total_per_day() const;
  double mean_batch() const;  ///< Failures that come together, on average.
};

/// One failure, with all that chance decides about it. Each takes as many random numbers as every
/// other, so that runs of other policies meet the same failures at the same times.
struct Failure {
  Micros at = 0;
  int cause = 0;
  double detection = 0.0;  ///< [0, 1): how far into the range of times to detection.
  double presence = 0.0;   ///< [0, 1): it strikes nobody where a smaller share of nodes is there.
  Micros repair = 0;
  /// Units of a whole fleet that are up when it comes, of which the job and its spares are some; it
  /// strikes any of them alike. 0: failures are of the job alone.
  int fleet_up = 0;
  bool follows = false;  ///< It comes together with the one before.
};

/// What fails when in one replicate.
class FailureSource {
 public:
  FailureSource(std::uint64_t seed, std::uint64_t replicate) : seed_{seed}, replicate_{replicate} {}
  virtual ~FailureSource() = default;
  virtual Failure next() = 0;  ///< In order.
  virtual double rate_factor() const { return 1.0; }
  /// Of a fleet: until when its units are in repair that are down at the beginning.
  virtual std::vector<Micros> down_at_start() const { return {}; }
  /// Of this replicate, for what is no failure. Streams of sources themselves are below 16.
  Random other_random(std::uint64_t stream) const { return Random{seed_, replicate_, 16 + stream}; }

 private:
  std::uint64_t seed_, replicate_;
};

/// As a law says.
class FailureDraws final : public FailureSource {
 public:
  FailureDraws(const FailureLaw& law, std::uint64_t seed, std::uint64_t replicate);
  Failure next() override;
  double rate_factor() const override { return rate_factor_; }

 private:
  void begin_month();
  void begin_batch();

  const FailureLaw& law_;
  double total_per_us_;
  Random random_;        ///< Of failures.
  Random month_random_;  ///< Of months: other policies see as many of them as they last.
  Random batch_random_;
  std::size_t left_of_batch_ = 0;
  Micros batch_repair_ = 0;
  double rate_factor_ = 1.0;
  double month_factor_ = 1.0;
  Micros month_ends_ = 0;
  double now_ = 0.0;
};

/// What a rate is multiplied by in a replicate.
double draw_rate_factor(const RateError& error, Random random);

/// Gamma with that shape, which is its mean, by Marsaglia and Tsang, ACM TOMS 26, 2000.
double draw_gamma(Random& random, double shape);

/// The quantile at `u` of repair_us as FailureLaw has it.
Micros repair_at(std::span<const double> quantiles, double u);

}  // namespace orrery
