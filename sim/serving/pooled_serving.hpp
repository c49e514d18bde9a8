#pragma once

#include <memory>

#include "sim/serving/pools.hpp"
#include "sim/serving/serving_run.hpp"

namespace orrery {

/// Two pools with their memory and their prices: of the plan's deployments but for the number of
/// their replicas, so that other splits of the same GPUs can share them.
struct PricedPools {
  PoolsPlan plan;
  std::shared_ptr<const PricedServing> prefill, decode;
};

/// Reads and checks all, as make_serving_setup().
PricedPools price_pools(const std::string& model, const std::string& system,
                        const std::string& engine, const PoolsRequest& request, const Place& at,
                        const Place& prefill, const Place& decode);
/// Of a model that is known.
PricedPools price_pools(const Model& model, const std::string& system, const std::string& engine,
                        const PoolsRequest& request, const Place& at, const Place& prefill,
                        const Place& decode);

/// Errors (infeasible): a pool whose memory does not hold a request, of its prompt where it
/// prefills.
void need_room(const PricedPools& pools, const Request& longest, const Place& prefill,
               const Place& decode);

/// Replays the requests on both pools.
ServingRun serve_pools(const PricedPools& pools, const ServingLoad& load);

/// How keys and values of a prompt go from the first replica of the prefill pool to the first of
/// the decode pool, with nobody else on the links.
struct LoneTransfer {
  std::int64_t tokens = 0;
  Bytes kv, sent;  ///< Each once; and with copies for ranks that hold the same.
  int flows = 0;
  bool inside = false;  ///< One NVLink domain.
  Seconds time;
};
LoneTransfer lone_transfer(const PricedPools& pools, std::int64_t tokens);

}  // namespace orrery
