#pragma once

#include <optional>
#include <vector>

#include "sim/profile/operation_price.hpp"
#include "sim/serving/serving_step.hpp"
#include "sim/training/context.hpp"

namespace orrery {

/// Whose operations those are.
struct OperationList {
  MachineRoofs roofs;
  std::vector<OperationPrice> operations;  ///< Those that take longest first.
  int stage = 0;                           ///< Of a training step: whose rank.
  Seconds whole;  ///< Of an iteration: with the host. Of a step: what a rank's passes take alone.
};

/// What one rank of a pipeline stage runs in a step: each kernel of its layers, of embedding and
/// head, forward, backward and computed again, and the collectives inside of passes, with prices
/// and errors of the estimate. Routing is even. What is not listed: waits for the host, what
/// kernels lose beside collectives, and traffic between passes (gradients, weights, stages).
/// `stage`: of which; nothing: that whose kernels take longest.
OperationList step_operations(const Scenario& scenario, EstimateContext& context,
                              std::optional<int> stage = {});

/// The kernels of a serving iteration, over all layers.
OperationList iteration_operations(const ServingStep& step);

}  // namespace orrery
