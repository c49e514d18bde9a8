#pragma once

#include <vector>

namespace orrery::calibration {

/// Statistics of repeated timings.
struct TimingSummary {
  double median_us = 0.0;
  double p10_us = 0.0;
  double p90_us = 0.0;
  /// Half the width of the median's 95 % confidence interval over the median, from order statistics
  /// alone: no distribution is assumed, and outliers on one side do not count. Under six samples,
  /// which have no such interval: the whole range over the median, and 1 for a single sample.
  double noise = 0.0;
  /// Median of the later half over that of the earlier half, minus 1: a clock that is moving.
  double drift = 0.0;
  int samples = 0;
};

/// The value below which `share` of `sorted` lies, linear between neighbours (Hyndman and Fan,
/// 1996, definition 7: the share of the k-th of n values, from 0, is k / (n - 1)). `sorted` is not
/// empty.
double quantile(const std::vector<double>& sorted, double share);

/// Ranks, from 1, of the two order statistics that enclose the median of the distribution with at
/// least 95 % probability; low 0: `samples` are too few (under six).
struct MedianInterval {
  int low = 0;
  int high = 0;
};
MedianInterval median_interval(int samples);

/// Timings come in the order in which they were taken; at least one, all positive.
TimingSummary summarize(const std::vector<double>& times_us);

}  // namespace orrery::calibration
