#pragma once

#include <string>
#include <vector>

#include "calibration/host/gpu_state.hpp"
#include "calibration/host/statistics.hpp"

namespace orrery::calibration {

/// A stretch of a series: the median time of a run in it, and the driver's last reading.
struct SeriesPoint {
  double at_s = 0.0;  ///< Its end, from the first run on.
  double median_us = 0.0;
  GpuState state;
};

/// Times of the same work from a cool GPU on, without pause: the power limit lowers the clock
/// within tens of milliseconds, so that a second's median shows none of it. Windows of about a
/// millisecond are added in order; the driver's readings may come less often.
class ClockSeries {
 public:
  static constexpr double burst_s = 0.02;     ///< Benchmarks of single kernels take about that.
  static constexpr double sustained_s = 5.0;  ///< The end, several periods of the power limit.

  /// `runs` of the work took `window_us` together.
  void add(double window_us, int runs);
  void note(const GpuState& state);

  bool empty() const { return windows_.empty(); }
  double length_s() const { return windows_.empty() ? 0.0 : windows_.back().end_s; }
  /// The median run of the windows that began within `burst_s`.
  double burst_us() const;
  /// The windows of the last `sustained_s`; of the later half where all are shorter than twice it.
  TimingSummary sustained() const;
  /// Each window of the burst, then ten a decade of time: some fifty points for any length.
  std::vector<SeriesPoint> points() const;

 private:
  struct Window {
    double begin_s, end_s, run_us;
    GpuState state;
  };
  std::vector<Window> windows_;
  GpuState last_;
};

}  // namespace orrery::calibration
