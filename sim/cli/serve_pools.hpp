#pragma once

#include <optional>

#include "sim/cli/options.hpp"
#include "sim/serving/pooled_serving.hpp"
#include "sim/serving/pools.hpp"

namespace orrery {

/// Options of `orrery serve` that say of pools for prompts and answers.
boost::program_options::options_description pool_options();

/// What they say, each pool on top of `both`; none where they say nothing.
std::optional<PoolsRequest> read_pools(const ParsedOptions& parsed, const DeploymentRequest& both);

/// One iteration of each pool and a prompt's way between them, or what clients see of both.
int serve_pools(const ParsedOptions& parsed, const PoolsRequest& request,
                const std::optional<Iteration>& iteration);

}  // namespace orrery
