#include "sim/analysis/run/expected_days.hpp"

#include <algorithm>
#include <cmath>

#include "sim/work/result/step_range.hpp"

namespace orrery {

ChanceRange expected_days(const PreparedRun& run) {
  const FailureLaw& law = run.law;
  const double days = run.without_interruption().si() / 86400.0;
  double variance = law.error.events > 0.0
                        ? 1.0 / law.error.events
                        : std::pow(std::log(law.error.factor) / range_deviations, 2.0);
  if (law.month > 0) {
    const double months = days * micros_per_day / static_cast<double>(law.month);
    variance += std::log1p(law.month_deviation * law.month_deviation / std::max(1.0, months));
  }
  const double factor = std::exp(range_deviations * std::sqrt(variance));
  const auto at = [&](double times) {
    return days / expected_ettr(run, run.tiers().size() - 1, times);
  };
  return {at(1.0), at(1.0 / factor), at(factor)};
}

}  // namespace orrery
