#include "sim/core/random.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace orrery {
namespace {

// ln 2, its first 32 bits and the rest: k times the first part is exact.
constexpr double ln2_high = 0x1.62e42feep-1;
constexpr double ln2_low = 0x1.a39ef35793c76p-33;

}  // namespace

// x = 2^e m with m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s) with s = (m - 1) / (m + 1), whose
// series ends below 1e-17 after 11 terms, as s^2 < 0.0295.
double portable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2.0;
    --exponent;
  }
  const double s = (m - 1.0) / (m + 1.0);
  const double square = s * s;
  double series = 0.0;
  for (int odd = 23; odd >= 1; odd -= 2) series = series * square + 1.0 / odd;
  const double k = exponent;
  return k * ln2_high + (2.0 * s * series + k * ln2_low);
}

// x = k ln 2 + r with |r| <= ln 2 / 2; the series of e^r ends below 1e-17 after 14 terms.
double portable_exp(double x) {
  if (x < -700.0) return 0.0;
  if (x > 700.0) x = 700.0;
  const double k = std::floor(x / (ln2_high + ln2_low) + 0.5);
  const double r = (x - k * ln2_high) - k * ln2_low;
  double series = 1.0;
  for (int term = 15; term >= 1; --term) series = 1.0 + series * r / term;
  return std::ldexp(series, static_cast<int>(k));
}

namespace {

std::uint64_t splitmix(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15u;
  std::uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

// Repeated squaring does not depend on libm.
double power(double base, std::uint64_t exponent) {
  double result = 1.0;
  for (; exponent > 0; exponent /= 2, base *= base)
    if (exponent % 2 == 1) result *= base;
  return result;
}

}  // namespace

Random::Random(std::initializer_list<std::uint64_t> key) {
  std::uint64_t mixed = 0;
  for (const std::uint64_t part : key) {
    mixed ^= part;
    mixed = splitmix(mixed);
  }
  for (std::uint64_t& word : state_) word = splitmix(mixed);
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t Random::below(std::uint64_t n) { return next() % n; }

double Random::unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

double Random::normal() {
  int ones = 0;
  for (int word = 0; word < 4; ++word) ones += std::popcount(next());
  // 256 fair bits have mean 128 and variance 64; the uniform step adds 1/12.
  constexpr double deviation = 8.005206639214987;  // sqrt(64 + 1/12)
  return (static_cast<double>(ones) - 128.0 + (unit() - 0.5)) / deviation;
}

double Random::binomial(double n, double p) {
  if (p > 0.5) return n - binomial(n, 1.0 - p);
  if (n < 1.0 || p <= 0.0) return 0.0;
  const double variance = n * p * (1.0 - p);
  if (variance >= 25.0)
    return std::clamp(std::floor(n * p + std::sqrt(variance) * normal() + 0.5), 0.0, n);
  // Inversion (Kachitvichyanukul and Schmeiser, CACM 31, 1988: BINV), term by term.
  const double odds = p / (1.0 - p);
  double chance = power(1.0 - p, static_cast<std::uint64_t>(n));
  double left = unit();
  double successes = 0.0;
  while (left >= chance && successes < n) {
    left -= chance;
    chance *= odds * (n - successes) / (successes + 1.0);
    successes += 1.0;
    if (chance <= 0.0) break;
  }
  return successes;
}

}  // namespace orrery
