#pragma once

#include <memory>

#include "sim/layers/step_cost.hpp"
#include "sim/training/context.hpp"

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
