#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "sim/cli/status_line.hpp"
#include "sim/sweep/best_rows.hpp"

namespace orrery {

/// Says how far a sweep is: share, rate, time left, best so far.
class SweepProgress {
 public:
  /// `there`: of `total` points, how many have their row already.
  SweepProgress(const Sweep& sweep, std::int64_t there, std::int64_t total, bool quiet);

  void row(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;

  void draw();

  const Sweep& sweep_;
  BestRows best_;
  std::int64_t there_ = 0, done_ = 0, total_ = 0;
  StatusLine line_;
  Clock::time_point begin_;
};

/// "gbs 512, mbs 2": the keys that a sweep varies, of one row.
std::string varied_keys(const Sweep& sweep, const BestRows& rows, const Row& row);

}  // namespace orrery
