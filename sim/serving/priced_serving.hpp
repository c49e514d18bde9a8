#pragma once

#include <memory>

#include "sim/serving/serving_step.hpp"
#include "sim/serving/step_times.hpp"

namespace orrery {

/// The times of iterations as the replay asks for them. `prices` is kept by reference.
StepLaw step_law(const IterationPrices& prices, const ServingSetup& setup);

/// A deployment with its memory and its prices, for many questions about it: what was priced for
/// one load is known to the next.
struct PricedServing {
  /// `kernels`: of the same GPU and engine, where another deployment has them; null: its own.
  explicit PricedServing(ServingSetup setup,
                         std::shared_ptr<const ServingKernels> kernels = nullptr);

  ServingSetup setup;
  KvCapacity kv;
  IterationPrices prices;
  mutable StepTimes times;  ///< Of `prices`: filled as it is asked.
};

}  // namespace orrery
