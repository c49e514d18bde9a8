#pragma once

#include <optional>
#include <string>

#include "sim/serving/deployment.hpp"

namespace orrery {

/// The user's options for separate pools of prompts and answers.
struct PoolsRequest {
  DeploymentRequest prefill, decode;
  std::optional<KvSending> sending;
  bool apart = false;  ///< No NVLink domain has GPUs of both.
};

/// Complete, checked pools. Replicas of both lie on GPUs of their own: the largest first, among
/// equal ones those that prefill, none over the end of a node or of a domain that could hold it.
struct PoolsPlan {
  Deployment prefill, decode;
  KvSending sending = KvSending::whole;
  bool apart = false;
  std::vector<int> prefill_gpus, decode_gpus;  ///< The first GPU of each replica.

  std::int64_t gpus() const { return prefill.gpus() + decode.gpus(); }
  int last_gpu() const;  ///< Some GPUs before it may be idle.
};

/// Reads "2P1D" or "3p2d": replicas of both pools. Errors (bad_input): another text.
void parse_pool_counts(const std::string& text, PoolsRequest& request, const Place& at);
/// Reads "tp=4,replicas=2", keys of one pool, into `pool`. Errors (bad_input): unknown keys, wrong
/// values, a key twice.
void parse_pool(const std::string& text, DeploymentRequest& pool, const Place& at);
KvSending parse_kv_sending(const std::string& text, const Place& at);

/// Joins two checked deployments. Errors (infeasible): as the last three of make_pools().
PoolsPlan join_pools(const System& system, const Deployment& prefill, const Deployment& decode,
                     KvSending sending, bool apart, const Place& at);

/// Completes `request`: one replica of one GPU in each pool, the engine's mode of sending.
/// `prefill`, `decode`: places for messages. Errors: as make_deployment() for each pool;
/// infeasible: an engine without pools, caches of different formats or blocks, more GPUs than the
/// system has.
PoolsPlan make_pools(const Model& model, const System& system, const ServingEngine& engine,
                     const PoolsRequest& request, const Place& prefill, const Place& decode);

}  // namespace orrery
