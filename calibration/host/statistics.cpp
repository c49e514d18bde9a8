#include "calibration/host/statistics.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace orrery::calibration {
namespace {

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

}  // namespace

double quantile(const std::vector<double>& sorted, double share) {
  assert(!sorted.empty() && share >= 0.0 && share <= 1.0);
  const double at = share * static_cast<double>(sorted.size() - 1);
  const std::size_t below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

// The number of samples below the median is that of heads in `samples` tosses: the r-th smallest is
// above it with probability P(heads < r). Each side may miss with 2.5 %.
MedianInterval median_interval(int samples) {
  constexpr int exact_up_to = 1000;  // 2^-1000 is still a double.
  int low = 0;
  if (samples <= exact_up_to) {
    double probability = std::pow(0.5, samples);  // The chance of exactly `low` heads.
    for (double below = probability; below <= 0.025; below += probability) {
      ++low;
      probability *= static_cast<double>(samples - low + 1) / low;
    }
  } else {
    low = static_cast<int>((samples - 1.96 * std::sqrt(samples)) / 2.0);
  }
  return {low, low == 0 ? 0 : samples + 1 - low};
}

TimingSummary summarize(const std::vector<double>& times_us) {
  assert(!times_us.empty());
  std::vector<double> sorted = times_us;
  std::sort(sorted.begin(), sorted.end());
  TimingSummary summary;
  summary.samples = static_cast<int>(sorted.size());
  summary.median_us = quantile(sorted, 0.5);
  summary.p10_us = quantile(sorted, 0.1);
  summary.p90_us = quantile(sorted, 0.9);
  const MedianInterval interval = median_interval(summary.samples);
  if (summary.samples == 1)
    summary.noise = 1.0;
  else if (interval.low == 0)
    summary.noise = (sorted.back() - sorted.front()) / summary.median_us;
  else
    summary.noise = (sorted[static_cast<std::size_t>(interval.high - 1)] -
                     sorted[static_cast<std::size_t>(interval.low - 1)]) /
                    (2.0 * summary.median_us);
  if (summary.samples > 1) {
    const auto middle = times_us.begin() + static_cast<std::ptrdiff_t>(times_us.size() / 2);
    summary.drift = median_of({middle, times_us.end()}) / median_of({times_us.begin(), middle}) - 1;
  }
  return summary;
}

}  // namespace orrery::calibration
