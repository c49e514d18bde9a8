#pragma once

#include <map>
#include <string>

#include "sim/cluster/economics.hpp"
#include "sim/core/worker_pool.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/sweep/row.hpp"
#include "sim/training/context.hpp"

namespace orrery {

/// Inputs that the points of a sweep share, by their names on its axes.
struct SweepInputs {
  std::map<std::string, Model> models;
  using SystemName = std::pair<std::string, std::string>;  ///< And its calibration, or "".
  std::map<SystemName, System> systems;
  std::map<std::string, Software> software;
  std::map<SystemName, Economics> economics;  ///< Empty unless the sweep needs them.
};
/// Errors (bad_input): a model, a system, prices or a calibration that cannot be read, or a
/// calibration of another GPU.
SweepInputs read_inputs(const Sweep& sweep);

/// Evaluates a point's number to its row. All arguments must outlive it.
class PointEvaluator {
 public:
  /// Reads measurements, before workers are forked.
  PointEvaluator(const Sweep& sweep, const Grid& grid, const SweepInputs& inputs);

  /// The row, for a worker. A process in which SimGrid has run is spent: its clock goes on from one
  /// simulation to the next, and with it the rounding of all times.
  Answer operator()(std::int64_t point);

 private:
  Answer answer(std::int64_t point);
  Answer infeasible(std::int64_t point, const std::string& reason) const;
  Scenario scenario_of(std::int64_t point);
  const Software& software(const std::string& name);
  SweepInputs::SystemName system_of(std::int64_t point) const;

  const Sweep& sweep_;
  const Grid& grid_;
  const SweepInputs& inputs_;
  std::map<SweepInputs::SystemName, EstimateContext> contexts_;
  KnownLoads loads_;  ///< Used by a sweep of memory alone, which has no contexts.
  std::map<std::string, Software> softwares_;
  std::map<std::string, std::vector<Software>> near_;  ///< Neighbours of each software.
};

}  // namespace orrery
