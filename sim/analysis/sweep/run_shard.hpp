#pragma once

#include <functional>
#include <string>

#include "sim/analysis/sweep/point_evaluator.hpp"
#include "sim/analysis/sweep/sweep_folder.hpp"

namespace orrery {

/// Computes the points of `shard` that have no row yet, in `workers` processes, and appends a row
/// for each in the order of the points: the file's bytes depend neither on the number of workers
/// nor on how often it was interrupted. A shard that is complete is left alone.
/// `evaluator` is that of the folder's sweep and `grid` its points; `on_row` is told every new row.
/// Errors (bad_input): as of ShardWriter; rows that are there are not those of this sweep.
void run_shard(const SweepFolder& folder, Shard shard, const Grid& grid, PointEvaluator& evaluator,
               int workers, const WorkerLimits& limits,
               const std::function<void(const std::string& row)>& on_row);

}  // namespace orrery
