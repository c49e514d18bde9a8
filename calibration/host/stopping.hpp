#pragma once

#include <string>
#include <vector>

#include "calibration/host/statistics.hpp"

namespace orrery::calibration {

struct StoppingLimits {
  double noise = 0.005;    ///< nvbench's default bound, there on the relative standard deviation.
  double time_s = 1.0;     ///< The limit of measuring, whatever the noise.
  int least_samples = 10;  ///< The median's interval then leaves out the extremes on both sides.
  int most_samples = 1000;
};

/// Why a measurement ended.
enum class Stopped { not_yet, noise, time, samples };
const std::vector<std::string>& stopped_names();  ///< "", "noise", "time", "samples"

/// Decides when a timing has been repeated enough: when its noise is within the bound and its clock
/// stands still, or when the time is up.
///
/// Looking often and stopping at the first good look ends too early: by chance alone, the noise
/// dips under the bound sooner or later. So it must be within the bound at two looks in a row, with
/// new samples in between. A drift over twice the bound counts as noise that is not yet over.
class StoppingRule {
 public:
  explicit StoppingRule(const StoppingLimits& limits) : limits_{limits} {}

  /// A sample, in us, positive and finite.
  void add(double time_us);
  /// One look at what has been added. `spent_s`: time since the measurement began.
  Stopped look(double spent_s);
  TimingSummary summary() const { return summarize(times_us_); }
  int samples() const { return static_cast<int>(times_us_.size()); }

 private:
  StoppingLimits limits_;
  std::vector<double> times_us_;
  std::size_t seen_ = 0;  ///< Samples at the last look.
  int quiet_looks_ = 0;
};

}  // namespace orrery::calibration
