#pragma once

#include <memory>

#include "sim/analysis/estimate/context.hpp"
#include "sim/cost/passes/step_cost.hpp"

namespace orrery {

/// A plan, and where its tokens go: as many different expert groups as are drawn.
struct Routed {
  Routed(const Scenario& given, EstimateContext& context);

  Scenario scenario;
  std::shared_ptr<const RoutedLoads> loads;
};

std::shared_ptr<const StepCost> price(const Routed& routed, EstimateContext& context,
                                      const Layout& layout);

}  // namespace orrery
