#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/host/record.hpp"
#include "calibration/host/step_model.hpp"
#include "sim/cluster/system.hpp"
#include "sim/model/model.hpp"
#include "sim/plan/software.hpp"
#include "sim/training/step_range.hpp"

namespace orrery {

struct StepParts {
  Seconds forward, backward, optimizer;
  Seconds step;  ///< Time of all three, with gaps.
};

/// A training step that orrery-gpu ran, and its estimate.
struct MeasuredStep {
  std::string name;  ///< "2 layers of 4096, 4096 tokens, eager"
  StepParts measured, predicted;
  StepRange range;  ///< Range of the prediction.
  /// Host time to launch the step, if measured; launches of an estimate.
  std::optional<Seconds> host;
  int launches = 0;
};

/// Launch costs and gaps between kernels in a record, its `launch` cases. Unset ones are the
/// software's.
struct LaunchCosts {
  std::optional<Seconds> eager_gap;    ///< Gap between kernels of a stream ("chain").
  std::optional<Seconds> graph_gap;    ///< Gap in a CUDA graph ("graph").
  std::optional<Seconds> host_launch;  ///< Host time of one launch ("kernel").
};
LaunchCosts launch_costs_of(const calibration::Record& record);

/// The estimated model of a measured step.
Model model_of(const calibration::StepModel& step);

/// Every step of kind training_step that was measured, on one GPU of `system`, which brings its
/// calibration. Errors (bad_input): `record` has no such step; infeasible: one does not fit into
/// this GPU's memory.
std::vector<MeasuredStep> predict_steps(const calibration::Record& record, const std::string& file,
                                        const System& system);

}  // namespace orrery
