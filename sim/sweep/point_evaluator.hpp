#pragma once

#include <map>
#include <string>

#include "sim/input/scenario.hpp"
#include "sim/sweep/row.hpp"
#include "sim/workers/worker_pool.hpp"

namespace orrery {

/// What the points of a sweep share, by the names that its axes have for it.
struct SweepInputs {
  std::map<std::string, Model> models;
  std::map<std::string, System> systems;
};
/// Errors (bad_input): a model or a system that cannot be read.
SweepInputs read_inputs(const Sweep& sweep);

/// From the number of a point to its row. All arguments must outlive it.
class PointEvaluator {
 public:
  /// Starts the simulation engine, before workers are forked.
  PointEvaluator(const Sweep& sweep, const Grid& grid, const SweepInputs& inputs);

  /// The row, for a worker. A process that has simulated is spent: SimGrid's clock goes on from one
  /// simulation to the next, and with it the rounding of all times.
  Answer operator()(std::int64_t point) const;

 private:
  Scenario scenario_of(std::int64_t point) const;

  const Sweep& sweep_;
  const Grid& grid_;
  const SweepInputs& inputs_;
};

}  // namespace orrery
