#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/serving/iteration_prices.hpp"
#include "sim/serving/kv_capacity.hpp"
#include "sim/serving/step_times.hpp"

namespace orrery {

/// What is served, on what, by what, and how.
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
/// Of a model that is known.
ServingSetup make_serving_setup(const Model& model, const std::string& system,
                                const std::string& engine, const DeploymentRequest& request,
                                int gpus, const Place& at);

/// One iteration of a deployment and the memory that it leaves.
struct ServingStep {
  ServingSetup setup;
  Iteration iteration;
  IterationPrice price;
  KvCapacity kv;
  /// Of answers, where all replicas decode so on and on; 0 where there are prompts.
  double tokens_per_s = 0.0;
  std::string measured_gpu;         ///< Whose tables were used; "": none.
  std::vector<std::string> tables;  ///< Which.
};

/// Errors (infeasible): memory that does not hold the iteration's requests, with the miss.
ServingStep serving_step(const ServingSetup& setup, const Iteration& iteration, const Place& at);

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
