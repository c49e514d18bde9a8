#pragma once

#include "sim/cli/options.hpp"
#include "sim/core/worker_pool.hpp"
#include "sim/sweep/point_evaluator.hpp"
#include "sim/sweep/sweep_folder.hpp"

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
