#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/serving/iteration_prices.hpp"
#include "sim/serving/kv_capacity.hpp"
#include "sim/serving/step_times.hpp"

namespace orrery {

/// A served model, with its system, engine and deployment.
struct ServingSetup {
  Model model;
  System system;
  ServingEngine engine;
  Deployment deployment;
};

/// Reads and checks all four. Errors: as their readers', with `at` for the deployment's keys.
ServingSetup make_serving_setup(const std::string& model, const std::string& system,
                                const std::string& engine, const DeploymentRequest& request,
                                int gpus, const Place& at);
/// The same for a given model.
ServingSetup make_serving_setup(const Model& model, const std::string& system,
                                const std::string& engine, const DeploymentRequest& request,
                                int gpus, const Place& at);

/// One iteration of a deployment and the memory that it leaves.
struct ServingStep {
  ServingSetup setup;
  Iteration iteration;
  IterationPrice price;
  KvCapacity kv;
  /// Steady-state output rate of all replicas; 0 if there are prompts.
  double tokens_per_s = 0.0;
  std::string measured_gpu;         ///< GPU whose tables were used; "": none.
  std::vector<std::string> tables;  ///< Their titles.
};

/// Tokens of its longest request, decodes being as long as they are on average.
std::int64_t longest_of(const Iteration& iteration);

/// One sentence for each limit of the engine's scheduler that the iteration exceeds.
std::vector<std::string> batch_notes(const ServingSetup& setup, const Iteration& iteration);

/// Errors (infeasible): memory does not hold the iteration's requests, with what is missing.
ServingStep serving_step(const ServingSetup& setup, const Iteration& iteration, const Place& at);

/// The times of a deployment's iterations, for replays. Keeps a reference to `prices`.
StepCosts step_costs(const IterationPrices& prices, const ServingSetup& setup);

/// A deployment with its memory and its prices, shared by loads: what is priced for one is known to
/// the next.
struct PricedServing {
  /// `kernels`: those of another deployment on the same GPU and engine; null: its own.
  explicit PricedServing(ServingSetup setup,
                         std::shared_ptr<const ServingKernels> kernels = nullptr);

  ServingSetup setup;
  KvCapacity kv;
  IterationPrices prices;
  mutable StepTimes times;  ///< Filled from `prices` as needed.
};

}  // namespace orrery
