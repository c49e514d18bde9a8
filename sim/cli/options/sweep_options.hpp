#pragma once

#include "sim/analysis/sweep/point_evaluator.hpp"
#include "sim/analysis/sweep/sweep_folder.hpp"
#include "sim/base/workers/worker_pool.hpp"
#include "sim/cli/options/options.hpp"

namespace orrery {

/// What `orrery sweep run` is to do, from its options and Slurm's environment.
struct SweepJob {
  SweepFolder folder;
  SweepInputs inputs;
  std::vector<Shard> shards;  ///< To be computed by this process, one after the other.
  int workers = 1;
  WorkerLimits limits;
};

boost::program_options::options_description sweep_run_options();
/// Errors: what cannot be meant; --out holds another sweep; a shard that does not exist.
SweepJob read_sweep_job(const ParsedOptions& options);

}  // namespace orrery
