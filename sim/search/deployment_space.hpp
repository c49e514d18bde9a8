#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/search/dimension.hpp"
#include "sim/serving/pools.hpp"
#include "sim/serving/serving_run.hpp"

namespace orrery {

/// "kv=bf16,fp8", "tp=1..8" (those that divide one of `gpus`). Errors (bad_input): no key, no
/// value, an unknown key or value.
Fixed parse_fixed_key(const std::string& text, const std::vector<int>& gpus);

/// The machine that serves, and the engine that runs on it.
struct ServingPlatform {
  System system;
  ServingEngine engine;
  int gpus = 0;
  std::string system_word, engine_word;  ///< The user's words.
};

/// The parallelism of one pool's replicas, whatever their number.
struct PoolCut {
  int platform = 0;
  std::string keys;   ///< Value of --prefill: "tp=2,ep=4".
  std::string flags;  ///< Flags that both pools must have in common: "--kv fp8".
  Deployment plan;    ///< One replica's.
  bool prefills = false, decodes = false;  ///< Its memory holds a prompt; and a whole request.
};

/// A complete deployment of the model, whatever the load.
struct DeploymentLayout {
  int platform = 0;
  std::string flags;  ///< Flags of `orrery serve`: "--tp 2 --kv fp8".
  Deployment plan;    ///< The decoding pool's, if there are pools.
  std::optional<PoolsPlan> pools = {};
  int prefill = -1, decode = -1;  ///< Places in DeploymentSpace::cuts, if there are pools.

  std::int64_t gpus() const { return pools ? pools->gpus() : plan.gpus(); }
};

/// The choice of separate pools for prompts and answers.
enum class PoolChoice {
  none,  ///< No.
  all,   ///< Both are tried.
  only   ///< They are.
};
PoolChoice parse_pool_choice(const std::string& text);

/// Deployments that are not feasible for one reason: a key, or the memory.
struct RefusedDeployments {
  std::int64_t count = 0;
  std::string example;  ///< The first one's problem.
};

struct DeploymentSpace {
  std::vector<DeploymentLayout> layouts;
  std::vector<PoolCut> cuts;                          ///< Those of pools.
  std::int64_t combinations = 0;                      ///< Layouts, and those that were refused.
  std::map<std::string, RefusedDeployments> refused;  ///< One entry a key ("tp"), or "memory".
};

/// Every deployment whose degrees use all GPUs of a platform: tp, pp and, of models with experts,
/// dp and ep from all divisors, what is open after the engine's defaults; `fixed` says other values
/// of any key. Those whose KV cache does not hold the longest request are refused. In an order that
/// depends on nothing else.
///
/// Pools add every two cuts of replicas, of degrees that divide the GPUs and without pipelines
/// unless `fixed` says so, with as many replicas of both as use all GPUs; all but degrees is the
/// same in both. Engines without pools have none.
DeploymentSpace deployment_space(const Model& model, const std::vector<ServingPlatform>& platforms,
                                 const std::vector<Fixed>& fixed, const Request& longest,
                                 PoolChoice pools = PoolChoice::none);

}  // namespace orrery
