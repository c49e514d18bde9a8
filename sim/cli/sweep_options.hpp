#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "sim/cli/options.hpp"
#include "sim/cli/terminal.hpp"
#include "sim/core/worker_pool.hpp"
#include "sim/sweep/best_rows.hpp"
#include "sim/sweep/point_evaluator.hpp"
#include "sim/sweep/sweep_folder.hpp"

namespace orrery {

/// The work of `orrery sweep run`, from its options and Slurm's environment.
struct SweepJob {
  SweepFolder folder;
  SweepInputs inputs;
  std::vector<Shard> shards;  ///< This process computes them one after the other.
  int workers = 1;
  WorkerLimits limits;
};

/// The options of `orrery sweep run`.
struct SweepOptions {
  std::optional<std::string> plan, sweep, zip, where, economics, output, html;
  std::optional<double> tokens;
  std::map<std::string, std::string> axes;  ///< Keys that may have several values.
  bool memory_only = false, long_ranges = false, force = false;
  std::optional<Shard> shard;
  int shards = 0;  ///< 0: not given.
  int workers = 1;
  WorkerLimits limits;
};
void add_sweep_run(Options& options, SweepOptions& into);
/// `files`: words that are no option. Errors: what cannot be meant; --output holds another sweep; a
/// shard that does not exist.
SweepJob read_sweep_job(const SweepOptions& given, const std::vector<std::string>& files);

/// Says how far a sweep is: share, rate, time left, best so far.
class SweepProgress {
 public:
  /// `there`: of `total` points, how many have their row already.
  SweepProgress(const Sweep& sweep, std::int64_t there, std::int64_t total);

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
