#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/serving/pools.hpp"
#include "sim/serving/serving_run.hpp"

namespace orrery {

/// A key of a deployment with the values that it may have, as flags write them.
struct FixedKey {
  std::string key;
  std::vector<std::string> values;
};

/// "kv=bf16,fp8", "tp=1..8" (those that divide one of `gpus`). Errors (bad_input): no key, no
/// value, an unknown key or value.
FixedKey parse_fixed_key(const std::string& text, const std::vector<int>& gpus);

/// On what, and by what.
struct ServingGround {
  System system;
  ServingEngine engine;
  int gpus = 0;
  std::string system_word, engine_word;  ///< As the user wrote them.
};

/// How the replicas of one pool are cut, whatever their number.
struct PoolCut {
  int ground = 0;
  std::string keys;                        ///< "tp=2,ep=4": as --prefill takes them.
  std::string flags;                       ///< "--kv fp8": what both pools must have in common.
  Deployment plan;                         ///< Of one replica.
  bool prefills = false, decodes = false;  ///< Its memory holds a prompt; and a whole request.
};

/// A way to serve the model: all but how many come.
struct DeploymentLayout {
  int ground = 0;
  std::string flags;  ///< "--tp 2 --kv fp8": what `orrery serve` would be told.
  Deployment plan;    ///< With pools of the one that decodes.
  std::optional<PoolsPlan> pools = {};
  int prefill = -1, decode = -1;  ///< With pools, their places in DeploymentSpace::cuts.

  std::int64_t gpus() const { return pools ? pools->gpus() : plan.gpus(); }
};

/// Whether prompts and answers may be computed by pools of their own.
enum class PoolChoice {
  none,  ///< No.
  all,   ///< Both are tried.
  only   ///< They are.
};
PoolChoice parse_pool_choice(const std::string& text);

/// Deployments that cannot be, by what stands against them: a key, or the memory.
struct RefusedDeployments {
  std::int64_t count = 0;
  std::string example;  ///< What is wrong with the first of them.
};

struct DeploymentSpace {
  std::vector<DeploymentLayout> layouts;
  std::vector<PoolCut> cuts;                          ///< Of pools.
  std::int64_t combinations = 0;                      ///< Layouts, and those that were refused.
  std::map<std::string, RefusedDeployments> refused;  ///< By key ("tp"), or "memory".
};

/// Every deployment whose degrees use all GPUs of a ground: tp, pp and, of models with experts, dp
/// and ep from all divisors, what is open after the engine's defaults; `fixed` says other values of
/// any key. Those whose KV cache does not hold the longest request are refused. In an order that
/// depends on nothing else.
///
/// With pools: every two cuts of replicas, of degrees that divide the GPUs and without pipelines
/// unless `fixed` says so, with as many replicas of both as use all GPUs; all but degrees is the
/// same in both. Engines without pools have none.
DeploymentSpace deployment_space(const Model& model, const std::vector<ServingGround>& grounds,
                                 const std::vector<FixedKey>& fixed, const Request& longest,
                                 PoolChoice pools = PoolChoice::none);

}  // namespace orrery
