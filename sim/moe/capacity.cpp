#include "sim/moe/capacity.hpp"

#include <algorithm>
#include <cmath>

namespace orrery {

std::int64_t expert_capacity(double factor, std::int64_t tokens, std::int64_t per_token,
                             std::int64_t experts) {
  const double mean = static_cast<double>(tokens * per_token) / static_cast<double>(experts);
  return static_cast<std::int64_t>(std::ceil(factor * mean - 1e-9));
}

// Terms relative to the most likely one, by their ratios, outwards until nothing is added: no
// logarithm of a factorial, and the same bits on every machine.
double binomial_excess(std::int64_t n, double p, std::int64_t capacity) {
  if (p <= 0.0 || capacity >= n) return 0.0;
  if (p >= 1.0) return static_cast<double>(n - capacity);
  const auto trials = static_cast<double>(n);
  const auto mode = static_cast<double>(
      std::clamp<std::int64_t>(static_cast<std::int64_t>((trials + 1.0) * p), 0, n));
  const double odds = p / (1.0 - p);
  double all = 0.0, excess = 0.0;
  const auto count = [&](double x, double term) {
    all += term;
    excess += std::max(0.0, x - static_cast<double>(capacity)) * term;
  };
  constexpr double negligible = 1e-18;
  double term = 1.0;
  for (double x = mode; x <= trials && term > negligible; x += 1.0) {
    count(x, term);
    term *= odds * (trials - x) / (x + 1.0);
  }
  term = mode / ((trials - mode + 1.0) * odds);
  for (double x = mode - 1.0; x >= 0.0 && term > negligible; x -= 1.0) {
    count(x, term);
    term *= x / ((trials - x + 1.0) * odds);
  }
  return excess / all;
}

}  // namespace orrery
