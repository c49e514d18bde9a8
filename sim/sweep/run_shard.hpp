#pragma once

#include <functional>
#include <string>

#include "sim/sweep/point_evaluator.hpp"
#include "sim/sweep/sweep_folder.hpp"

namespace orrery {

/// Callbacks for what happens to a shard.
struct ShardWatch {
  std::function<void(const std::string& row)> on_row;  ///< Every new row.
  /// "sweep1/shard-00000-of-00001.jsonl: row 17 is damaged": it is computed again from there on.
  std::function<void(const std::string& damage)> on_damage = {};
};

/// Computes the points of `shard` that have no sound row yet, in `workers` processes, and appends a
/// row for each in the order of the points: the file's bytes depend neither on the number of
/// workers nor on how often it was interrupted. Points that an earlier run had to stop are tried
/// again; of a shard that is complete otherwise nothing is touched.
/// `evaluator` is that of the folder's sweep and `grid` its points.
/// Errors (bad_input): as of ShardWriter; rows that are there are not those of this sweep; an input
/// changed meanwhile.
void run_shard(const SweepFolder& folder, Shard shard, const Grid& grid, PointEvaluator& evaluator,
               int workers, const WorkerLimits& limits, const ShardWatch& watch);

}  // namespace orrery
