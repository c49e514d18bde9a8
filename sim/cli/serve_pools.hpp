#pragma once

#include <optional>

#include "sim/cli/serve_setup.hpp"
#include "sim/cli/serve_traffic.hpp"
#include "sim/serving/pools.hpp"

namespace orrery {

/// The options on pools for prompts and answers.
struct PoolOptions {
  std::optional<std::string> prefill, decode, pools;
  std::optional<KvSending> sending;
  bool apart = false;
};
void add_pools(Options& options, PoolOptions& into);

/// The pools, each on top of `both`; none where the options say nothing of them.
std::optional<PoolsRequest> read_pools(const Options& options, const PoolOptions& pools,
                                       const DeploymentRequest& both);

/// One iteration of each pool and a prompt's way between them, or what clients see of both.
int serve_pools(const Options& options, const DeploymentOptions& given,
                const TrafficOptions& traffic, const PoolsRequest& request,
                const std::optional<Iteration>& iteration);

}  // namespace orrery
