#pragma once

#include <memory>

#include "sim/serving/pools.hpp"
#include "sim/serving/serving_run.hpp"

namespace orrery {

/// Two pools with their memory and their prices. Prices do not depend on the number of replicas, so
/// that other splits of the same GPUs can share them.
struct PricedPools {
  PoolsPlan plan;
  std::shared_ptr<const PricedServing> prefill, decode;
};

/// Reads and checks all, as make_serving_setup() does.
PricedPools price_pools(const std::string& model, const std::string& system,
                        const std::string& engine, const PoolsRequest& request, const Place& at,
                        const Place& prefill, const Place& decode);
/// The same for a given model.
PricedPools price_pools(const Model& model, const std::string& system, const std::string& engine,
                        const PoolsRequest& request, const Place& at, const Place& prefill,
                        const Place& decode);

/// Errors (infeasible): the memory of the decode pool does not hold a request, or that of the
/// prefill pool its prompt.
void need_space(const PricedPools& pools, const Request& longest, const Place& prefill,
                const Place& decode);

/// Replays the requests on both pools.
ServingRun serve_pools(const PricedPools& pools, const ServingLoad& load);

/// The transfer of a prompt's keys and values on idle links from the first replica of the prefill
/// pool to the first of the decode pool.
struct IsolatedTransfer {
  std::int64_t tokens = 0;
  Bytes kv, sent;  ///< Bytes once; and with copies for ranks that hold the same.
  int flows = 0;
  bool inside = false;  ///< One NVLink domain.
  Seconds time;
};
IsolatedTransfer isolated_transfer(const PricedPools& pools, std::int64_t tokens);

}  // namespace orrery
