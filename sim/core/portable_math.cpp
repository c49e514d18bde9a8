#include "sim/core/portable_math.hpp"

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

}  // namespace orrery
