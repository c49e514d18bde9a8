#pragma once

#include <optional>
#include <vector>

#include "sim/profile/operation_price.hpp"
#include "sim/serving/serving_step.hpp"
#include "sim/training/context.hpp"

namespace orrery {

/// The operations of a step or an iteration.
struct OperationList {
  MachineRoofs roofs;
  std::vector<OperationPrice> operations;  ///< Those that take longest first.
  int stage = 0;                           ///< Stage of the rank in a training step.
  Seconds whole;  ///< Iteration time with the host, or the sum of a step's operations.
};

/// The operations that one rank of a pipeline stage runs in a step: each kernel of its layers, of
/// embedding and head, forward, backward and recomputed, and the collectives inside of passes, with
/// prices and errors of the estimate. Routing is even. The list omits waits for the host, slowdown
/// by concurrent collectives, and traffic between passes (gradients, weights, stages). `stage`:
/// nothing is that whose kernels take longest.
OperationList step_operations(const Scenario& scenario, EstimateContext& context,
                              std::optional<int> stage = {});

/// The kernels of a serving iteration, over all layers.
OperationList iteration_operations(const ServingStep& step);

}  // namespace orrery
