#include "sim/moe/popularity.hpp"

#include <cassert>
#include <cmath>

namespace orrery {
namespace {

// Rounded to 2^-40 of itself, so that what libms disagree on does not reach a result.
double rounded(double x) {
  int exponent = 0;
  const double mantissa = std::frexp(x, &exponent);
  return std::ldexp(std::round(std::ldexp(mantissa, 40)), exponent - 40);
}

std::vector<double> weights(const Popularity& popularity, std::size_t count) {
  std::vector<double> weight(count, 1.0);
  const double p = popularity.parameter;
  for (std::size_t i = 0; i < count; ++i) {
    const double position = (static_cast<double>(i) + 0.5) / static_cast<double>(count);
    switch (popularity.kind) {
      case PopularityKind::uniform:
      case PopularityKind::hot:
        break;
      case PopularityKind::zipf:
        weight[i] = rounded(std::pow(static_cast<double>(i + 1), -p));
        break;
      case PopularityKind::power_law: {
        // The quantile of 1 - position; at exponent 1 the density's integral is a logarithm.
        constexpr double widest = 1000.0;
        const double upper = 1.0 - position;
        weight[i] = rounded(
            std::abs(p - 1.0) < 1e-9
                ? std::pow(widest, upper)
                : std::pow(1.0 + upper * (std::pow(widest, 1.0 - p) - 1.0), 1.0 / (1.0 - p)));
        break;
      }
      case PopularityKind::spread:
        weight[i] = 1.0 + p * (1.0 - 2.0 * position);
        break;
    }
  }
  return weight;
}

}  // namespace

std::vector<double> visit_shares(const Popularity& popularity, const Experts& experts) {
  const auto count = static_cast<std::size_t>(experts.count);
  const auto k = static_cast<double>(experts.per_token);
  if (popularity.kind == PopularityKind::hot) {
    const double others = count > 1 ? (k - popularity.parameter) / static_cast<double>(count - 1)
                                    : popularity.parameter;
    std::vector<double> share(count, others);
    share[0] = popularity.parameter;
    return share;
  }
  // In proportion to the weights. Experts that everybody would visit more than once are visited
  // once, and the others take what is left.
  std::vector<double> share = weights(popularity, count);
  double rest = 0.0;
  for (const double weight : share) rest += weight;
  double left = k;
  std::size_t full = 0;
  while (full < count && share[full] * left >= rest) {
    rest -= share[full];
    share[full++] = 1.0;
    left -= 1.0;
    if (left <= 0.0) break;
  }
  for (std::size_t i = full; i < count; ++i) share[i] = left > 0.0 ? share[i] * left / rest : 0.0;
  return share;
}

}  // namespace orrery
