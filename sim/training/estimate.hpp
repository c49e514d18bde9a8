#pragma once

#include <optional>

#include "sim/cluster/topology.hpp"
#include "sim/engine/simulation.hpp"
#include "sim/layers/step_cost.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/context.hpp"
#include "sim/training/contraction.hpp"
#include "sim/training/result.hpp"
#include "sim/training/training_step.hpp"

namespace orrery {

/// Detail of the simulation; results agree within 0.1 % (docs/explanation/simulation.md).
struct Detail {
  bool unfolded = false;   ///< Simulate every rank, not one of each class.
  bool expanded = false;   ///< Simulate every collective, also on private links.
  Bytes host_memory = {};  ///< Limit of this machine's memory for the simulation; 0: none.
  /// Share of a GPU's memory beyond which a plan is refused.
  double most_memory = 1.0;
};

/// A simulated step: its figures, and the simulation that they were read from.
struct Estimate {
  Result result;
  TrainingStep step;
  Timeline timeline;
  Topology topology;
};

/// Simulates a step. Errors: infeasible if the plan does not fit in memory, with the shortfall and
/// the nearest change that would fit; a routing that is unsound or does not suit the plan.
Estimate estimate(const Scenario& scenario, Detail detail = {});
/// The same, with tables shared by estimates on `scenario`'s system.
Estimate estimate(const Scenario& scenario, EstimateContext& context, Detail detail = {});

/// The estimate's step time, to a relative 1e-9, for searches over thousands of plans. The plan
/// must fit. Expanded passes are fused tasks (Contraction), and long steps are extrapolated from an
/// excerpt.
Seconds step_time(const Scenario& scenario, EstimateContext& context);

/// The step time extrapolated from an excerpt (steady_state.hpp); nothing if no excerpt repeats.
std::optional<Seconds> step_time_from_excerpt(const Scenario& scenario, EstimateContext& context);

/// "the plan does not fit: stage 0 needs 166.0 GB on each GPU (105.9 GB optimizer state, 22.5 GB
/// activations, 17.6 GB weights), but a GPU has 84.9 GB: 81.1 GB too little".
std::string shortfall_text(const MemoryReport& memory);

/// The smallest change of `scenario`'s plan that fits, in words: "use --recompute full", or "" if
/// none of the usual ones does.
std::string nearest_fit(const Scenario& scenario);

/// Lower bound of a step's tasks if `ranks` ranks are simulated: a task for each pass.
double least_tasks(const Plan& plan, int ranks);

/// Estimated number of tasks: expanded passes count each kernel and each collective.
double expected_tasks(const Plan& plan, int ranks, const StepCost& cost,
                      const Contraction& contraction);

/// Refuses a simulation whose tasks would need more of this machine's memory than `most` (0: no
/// limit). Errors (infeasible): the memory that it would need.
void require_host_memory(double tasks, Bytes most);

}  // namespace orrery
