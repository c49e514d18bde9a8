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

/// How much is simulated; the answer is the same within 0.1 % (docs/explanation/simulation.md).
struct Detail {
  bool unfolded = false;   ///< Every rank, where else one stands for its twins.
  bool expanded = false;   ///< Every tensor-parallel collective, also where its links are private.
  Bytes host_memory = {};  ///< What the simulation may take of this machine's memory; 0: any.
  /// The share of a GPU's memory beyond which a plan is refused.
  double most_memory = 1.0;
};

/// A simulated step: the figures, and what they were read off.
struct Estimate {
  Result result;
  TrainingStep step;
  Timeline timeline;
  Topology topology;
};

/// Scenario to result, every step by its name. Errors: infeasible if the plan does not fit in
/// memory: by how much, and the nearest change that would fit; a routing that is unsound or does
/// not suit the plan.
Estimate estimate(const Scenario& scenario, Detail detail = {});
/// The same with what estimates on `scenario`'s system share.
Estimate estimate(const Scenario& scenario, EstimateContext& context, Detail detail = {});

/// The estimate's step time, to 1e-9 of it, and nothing else, for those who ask for thousands. The
/// plan must fit. Passes that an estimate draws are chains (Contraction), and long steps are told
/// from an excerpt.
Seconds step_time(const Scenario& scenario, EstimateContext& context);

/// The step time as an excerpt of the step tells it (steady_state.hpp), or nothing where none does.
std::optional<Seconds> step_time_from_excerpt(const Scenario& scenario, EstimateContext& context);

/// "the plan does not fit: stage 0 needs 166.0 GB on each GPU (105.9 GB optimizer state, 22.5 GB
/// activations, 17.6 GB weights), but a GPU has 84.9 GB: 81.1 GB too little".
std::string shortfall_text(const MemoryReport& memory);

/// The smallest change of `scenario`'s plan that fits, in words: "use --recompute full", or "" if
/// none of the usual ones does.
std::string nearest_fit(const Scenario& scenario);

/// Tasks that a step has at least, if so many ranks are simulated: a task for each pass.
double least_tasks(const Plan& plan, int ranks);

/// About as many as it has: of passes that are drawn, each kernel and each collective.
double expected_tasks(const Plan& plan, int ranks, const StepCost& cost,
                      const Contraction& contraction);

/// Refuses a simulation of so many tasks that it would need more of this machine's memory than
/// `most`. 0: any. Errors (infeasible): how much it would need.
void require_host_memory(double tasks, Bytes most);

}  // namespace orrery
