#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/training/estimate.hpp"

namespace orrery {

/// A plan on the way from one to another.
struct PlanStep {
  std::vector<std::string> keys;  ///< That it changes of the plan before it, in order of --help.
  Scenario scenario;
  std::optional<Seconds> step;  ///< Nothing: it does not fit.
};

/// From the plan of `before` to that of `after`, which train one model on one system, key by key;
/// `before` is the first step, `after` the last. Keys whose plan cannot run without the next one
/// are one step with it.
std::vector<PlanStep> plan_steps(const Scenario& before, const Scenario& after,
                                 EstimateContext& context);

}  // namespace orrery
