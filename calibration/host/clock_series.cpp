#include "calibration/host/clock_series.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace orrery::calibration {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

}  // namespace

void ClockSeries::add(double window_us, int runs) {
  assert(window_us > 0.0 && runs > 0);
  const double begin_s = length_s();
  windows_.push_back({begin_s, begin_s + 1e-6 * window_us, window_us / runs, last_});
}

void ClockSeries::note(const GpuState& state) {
  last_ = state;
  if (!windows_.empty()) windows_.back().state = state;
}

double ClockSeries::burst_us() const {
  assert(!empty());
  std::vector<double> times_us;
  for (const Window& window : windows_)
    if (window.begin_s < burst_s) times_us.push_back(window.run_us);
  return median(times_us);
}

TimingSummary ClockSeries::sustained() const {
  assert(!empty());
  const double from_s = std::max(length_s() - sustained_s, length_s() / 2.0);
  std::vector<double> times_us;
  for (const Window& window : windows_)
    if (window.begin_s >= from_s) times_us.push_back(window.run_us);
  if (times_us.empty()) times_us.push_back(windows_.back().run_us);
  return summarize(times_us);
}

std::vector<SeriesPoint> ClockSeries::points() const {
  std::vector<SeriesPoint> points;
  std::vector<double> bin_us;
  double border_s = burst_s;
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    const Window& window = windows_[i];
    bin_us.push_back(window.run_us);
    const bool burst = window.begin_s < burst_s, last = i + 1 == windows_.size();
    if (!burst && !last && window.end_s < border_s) continue;
    points.push_back({window.end_s, median(bin_us), window.state});
    bin_us.clear();
    while (border_s <= window.end_s) border_s *= std::pow(10.0, 0.1);
  }
  return points;
}

}  // namespace orrery::calibration
