#include "sim/reliability/failure_draws.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "sim/core/random.hpp"

namespace orrery {
namespace {

// Random streams that must not repeat each other.
constexpr std::uint64_t of_failures = 1, of_months = 2, of_rates = 3, of_batches = 6;
// Far beyond any run, and far below overflow.
constexpr double no_failure = 4e18;

// Uniform in (0, 1], so that its logarithm is finite.
double above_zero(Random& random) { return 1.0 - random.unit(); }

}  // namespace

double draw_rate_factor(const RateError& error, Random random) {
  if (error.events > 0.0) return draw_gamma(random, error.events + 0.5) / error.events;
  constexpr double deviations = 1.645;  // Nine in ten normal deviates lie within.
  return portable_exp(random.normal() * portable_log(error.factor) / deviations);
}

double FailureDistribution::total_per_day() const {
  double sum = 0.0;
  for (const double rate : per_day) sum += rate;
  return sum;
}

double FailureDistribution::mean_batch() const {
  double sum = 0.0, failures = 0.0;
  for (std::size_t i = 0; i < batches.size(); ++i)
    sum += batches[i], failures += static_cast<double>(i + 1) * batches[i];
  return sum > 0.0 ? failures / sum : 1.0;
}

double draw_gamma(Random& random, double shape) {
  if (shape < 1.0) {
    const double larger = draw_gamma(random, shape + 1.0);
    return larger * portable_exp(portable_log(above_zero(random)) / shape);
  }
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    const double x = random.normal();
    const double root = 1.0 + c * x;
    const double u = above_zero(random);
    if (root <= 0.0) continue;
    const double v = root * root * root;
    if (portable_log(u) < 0.5 * x * x + d * (1.0 - v + portable_log(v))) return d * v;
  }
}

Micros repair_at(std::span<const double> quantiles, double u) {
  if (quantiles.size() == 1) return static_cast<Micros>(quantiles[0]);
  const double at = u * static_cast<double>(quantiles.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(at), quantiles.size() - 2);
  const double low = portable_log(quantiles[below]);
  const double high = portable_log(quantiles[below + 1]);
  return static_cast<Micros>(portable_exp(low + (high - low) * (at - static_cast<double>(below))));
}

FailureDraws::FailureDraws(const FailureDistribution& distribution, std::uint64_t seed,
                           std::uint64_t replicate)
    : FailureSource{seed, replicate},
      distribution_{distribution},
      total_per_us_{distribution.total_per_day() / distribution.mean_batch() / micros_per_day},
      random_{seed, replicate, of_failures},
      month_random_{seed, replicate, of_months},
      batch_random_{seed, replicate, of_batches},
      rate_factor_{draw_rate_factor(distribution.error, Random{seed, replicate, of_rates})} {
  now_ = -static_cast<double>(distribution.before);
  month_ends_ = -distribution.before;
  begin_month();
}

void FailureDraws::begin_month() {
  if (distribution_.month == 0 || distribution_.month_deviation == 0.0) {
    month_ends_ = std::numeric_limits<Micros>::max();
    return;
  }
  const double shape = 1.0 / (distribution_.month_deviation * distribution_.month_deviation);
  month_factor_ = draw_gamma(month_random_, shape) / shape;
  month_ends_ += distribution_.month;
}

void FailureDraws::begin_batch() {
  if (distribution_.batches.empty()) return;
  double sum = 0.0;
  for (const double weight : distribution_.batches) sum += weight;
  double part = batch_random_.unit() * sum;
  std::size_t size = 1;
  while (size < distribution_.batches.size() && part >= distribution_.batches[size - 1])
    part -= distribution_.batches[size++ - 1];
  left_of_batch_ = size - 1;
  batch_repair_ = repair_at(distribution_.repair_us, batch_random_.unit());
}

Failure FailureDraws::next() {
  Failure failure;
  const double base = total_per_us_ * rate_factor_;
  if (left_of_batch_ > 0) {
    --left_of_batch_;
    failure.follows = true;
  } else {
    // Exponential in the integral of the rate, which is constant within a month.
    double left = -portable_log(above_zero(random_));
    // Over so many months their factors' mean is 1: without a look at each, it will not come.
    if (left > 2.0 * base * no_failure) now_ = no_failure;
    while (base > 0.0 && now_ < no_failure) {
      const double rate = base * month_factor_;
      const double ends = static_cast<double>(month_ends_);
      if (left <= rate * (ends - now_)) {
        now_ += left / rate;
        break;
      }
      left -= rate * (ends - now_);
      now_ = ends;
      begin_month();
    }
    begin_batch();
  }
  failure.at = base > 0.0 && now_ < no_failure ? static_cast<Micros>(now_)
                                               : std::numeric_limits<Micros>::max() / 2;
  double part = random_.unit() * distribution_.total_per_day();
  while (failure.cause + 1 < static_cast<int>(distribution_.per_day.size()) &&
         part >= distribution_.per_day[static_cast<std::size_t>(failure.cause)])
    part -= distribution_.per_day[static_cast<std::size_t>(failure.cause++)];
  failure.detection = random_.unit();
  failure.presence = random_.unit();
  failure.repair = repair_at(distribution_.repair_us, random_.unit());
  if (!distribution_.batches.empty()) failure.repair = batch_repair_;
  return failure;
}

}  // namespace orrery
