#pragma once

#include <cstdint>
#include <initializer_list>

namespace orrery {

/// Functions of libm from the four operations and square roots of IEEE arithmetic, so that a seed
/// samples the same on every machine; libm's results differ by their last bits from one processor
/// to the next. Within 1e-15 of the value (`portable_math_test.cpp`).

/// The natural logarithm of a positive, finite number.
double portable_log(double x);
/// e^x; 0 below -700, and at the most e^700.
double portable_exp(double x);

/// Random numbers that are the same on every machine: integers and the four operations of IEEE
/// arithmetic only, no <random> and no libm. xoshiro256** (Blackman and Vigna, ACM TOMS 47, 2021),
/// seeded through splitmix64 by every number of `key`.
class Random {
 public:
  explicit Random(std::initializer_list<std::uint64_t> key);

  std::uint64_t next();
  /// 0 .. n-1, each as likely but for 2^-64 n.
  std::uint64_t below(std::uint64_t n);
  /// A number in [0, 1), in steps of 2^-53.
  double unit();
  /// Mean 0, variance 1: a binomial of 256 fair bits, smoothed over its steps. True to the normal
  /// distribution within 0.001 of probability, bounded by 16.
  double normal();
  /// Successes among `n` trials of probability `p`: exact where their variance is below 25, else
  /// the nearest integer to a normal. 0 <= result <= n.
  double binomial(double n, double p);

 private:
  std::uint64_t state_[4];
};

}  // namespace orrery
