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
  Seconds step;  ///< Of all three, with what lies between them.
};

/// A training step that orrery-gpu ran, and what an estimate says of it.
struct MeasuredStep {
  std::string name;  ///< "2 layers of 4096, 4096 tokens, eager"
  StepParts measured, predicted;
  StepRange range;  ///< Of the prediction.
  /// The host's time to hand over all of it, where it could be told; kernels of an estimate.
  std::optional<Seconds> host;
  int launches = 0;
};

/// What lies between kernels, as a record has it: its `launch` cases. Where it lacks one, the
/// software's.
struct LaunchCosts {
  std::optional<Seconds> eager_gap;    ///< From kernel to kernel in a stream ("chain").
  std::optional<Seconds> graph_gap;    ///< In a CUDA graph ("graph").
  std::optional<Seconds> host_launch;  ///< The host's for one launch ("kernel").
};
LaunchCosts launch_costs_of(const calibration::Record& record);

/// The model as an estimate has it.
Model model_of(const calibration::StepModel& step);

/// Every step of kind training_step that was measured, on one GPU of `system`, which brings its
/// calibration. Errors (bad_input): `record` has no such step; infeasible: one does not fit into
/// this GPU's memory.
std::vector<MeasuredStep> predict_steps(const calibration::Record& record, const std::string& file,
                                        const System& system);

}  // namespace orrery
