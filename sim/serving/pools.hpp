#pragma once

#include <optional>
#include <string>

#include "sim/serving/deployment.hpp"

namespace orrery {

/// How prompts and answers are computed by pools of their own, as far as the user says it.
struct PoolsRequest {
  DeploymentRequest prefill, decode;
  std::optional<KvSending> sending;
  bool apart = false;  ///< No NVLink domain has GPUs of both.
};

/// The same, complete and checked. Replicas of both pools lie on GPUs of their own: the largest
/// first, of equal ones those that prefill, none over the end of a node or of a domain that could
/// hold it.
struct PoolsPlan {
  Deployment prefill, decode;
  KvSending sending = KvSending::whole;
  bool apart = false;
  std::vector<int> prefill_gpus, decode_gpus;  ///< The first GPU of each replica.

  std::int64_t gpus() const { return prefill.gpus() + decode.gpus(); }
  int last_gpu() const;  ///< Some before it may be idle.
};

/// "2P1D", "3p2d": replicas of both pools. Errors (bad_input): another text.
void parse_pool_counts(const std::string& text, PoolsRequest& request, const Place& at);
/// "tp=4,replicas=2": keys of one pool, on top of `pool`. Errors (bad_input): unknown keys, wrong
/// values, a key twice.
void parse_pool(const std::string& text, DeploymentRequest& pool, const Place& at);
KvSending parse_kv_sending(const std::string& text, const Place& at);

/// Of two checked deployments. Errors (infeasible): as the last three of make_pools().
PoolsPlan join_pools(const System& system, const Deployment& prefill, const Deployment& decode,
                     KvSending sending, bool apart, const Place& at);

/// Fills in what `request` leaves open: one replica of one GPU in each pool, the engine's way of
/// sending. `prefill`, `decode`: what messages call them. Errors: as make_deployment(), of each
/// pool; infeasible: an engine without pools, caches of different formats or blocks, more GPUs than
/// the system has.
PoolsPlan make_pools(const Model& model, const System& system, const ServingEngine& engine,
                     const PoolsRequest& request, const Place& prefill, const Place& decode);

}  // namespace orrery
