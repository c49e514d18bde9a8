#include "sim/reliability/expected_run.hpp"

#include <cmath>

namespace orrery {

double untouched(double rate, Seconds fixed) { return std::exp(-rate * fixed.si()); }

double untouched(double rate, Seconds low, Seconds high) {
  const double width = rate * (high - low).si();
  // (1 - exp(-w)) / w, the mean of exp(-x) over [0, w].
  const double mean = width < 1e-12 ? 1.0 : -std::expm1(-width) / width;
  return untouched(rate, low) * mean;
}

double time_over_work(const Interruptions& interruptions, const CheckpointCycle& cycle) {
  const double rate = interruptions.rate;
  const Seconds between = cycle.work + cycle.stall;
  if (rate == 0.0) return between / cycle.work;
  return std::expm1(rate * between.si()) * std::exp(rate * cycle.write.si()) /
         (rate * interruptions.recovered * cycle.work.si());
}

double time_over_work_safe_recovery(double rate, Seconds recovery, const CheckpointCycle& cycle) {
  const Seconds between = cycle.work + cycle.stall;
  if (rate == 0.0) return between / cycle.work;
  return std::expm1(rate * between.si()) * std::exp(rate * cycle.write.si()) *
         (1.0 / rate + recovery.si()) / cycle.work.si();
}

double linear_ettr(double rate, Seconds recovery, const CheckpointCycle& cycle) {
  return (1.0 - rate * (recovery + 0.5 * cycle.work).si()) / (1.0 + cycle.stall / cycle.work);
}

double one_plus_lambert_w0(double s) {
  if (s > 30.0) return 1.0;  // Less exp(-31).
  // With w = u - 1: ln(1 - u) + u + s = 0. The left side falls ever faster, and is not above 0 at
  // sqrt(2 s), as ln(1 - u) + u <= -u^2 / 2, and at 1 - exp(-1 - s): from there Newton's steps
  // come down to the root.
  double u = std::fmin(std::sqrt(2.0 * s), -std::expm1(-1.0 - s));
  for (int i = 0; i < 100 && u > 0.0; ++i) {
    const double next = u + (std::log1p(-u) + u + s) * (1.0 - u) / u;
    if (!(next < u)) break;
    u = next;
  }
  return u;
}

Seconds best_work(double rate, Seconds stall) {
  return Seconds{one_plus_lambert_w0(rate * stall.si()) / rate};
}

Seconds young_work(double rate, Seconds stall) {
  return Seconds{std::sqrt(2.0 * stall.si() / rate)};
}

Seconds daly_work(double rate, Seconds stall) {
  const double mttf = 1.0 / rate;
  const double d = stall.si();
  if (d >= 2.0 * mttf) return Seconds{mttf};
  const double x = std::sqrt(d / (2.0 * mttf));
  return Seconds{std::sqrt(2.0 * d * mttf) * (1.0 + x / 3.0 + x * x / 9.0) - d};
}

}  // namespace orrery
