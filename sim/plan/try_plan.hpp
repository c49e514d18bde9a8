#pragma once

#include <vector>

#include "sim/core/refused.hpp"
#include "sim/plan/scenario.hpp"

namespace orrery {

/// What make_scenario() finds out of a request, without what it was given.
struct SettledPlan {
  Plan plan;
  std::vector<int> layers_of;  ///< As Scenario has it.
};

/// The work of make_scenario() for who asks for many plans: no copy of the model, the system and
/// the software is made, and a plan that is none is a value and no error.
OrRefused<SettledPlan> try_plan(const Model& model, const System& system, const Software& software,
                                const PlanRequest& request, int gpus);

/// The scenario of a plan that try_plan() settled for the same three.
Scenario scenario_of(const Model& model, const System& system, const Software& software,
                     const SettledPlan& settled);

/// What a plan cannot ask of its activations: offloading beside stages or recomputation, and
/// attention in 8 bits without a format of 8 bits.
MaybeRefused refuse_activations(const Model& model, const Plan& plan);

}  // namespace orrery
