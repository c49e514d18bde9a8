#pragma once

#include "sim/layers/step_cost.hpp"
#include "sim/plan/scenario.hpp"
#include "sim/training/contraction.hpp"

namespace orrery {

/// Tasks that a step has at least, if so many ranks are simulated: a task for each pass.
double least_tasks(const Plan& plan, int ranks);

/// About as many as it has: of passes that are drawn, each kernel and each collective.
double expected_tasks(const Plan& plan, int ranks, const StepCost& cost,
                      const Contraction& contraction);

/// Refuses a simulation of so many tasks that it would need more of this machine's memory than
/// `most`. 0: any. Errors (infeasible): how much it would need.
void require_host_memory(double tasks, Bytes most);

}  // namespace orrery
