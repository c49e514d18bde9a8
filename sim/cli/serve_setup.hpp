#pragma once

#include "sim/cli/options.hpp"
#include "sim/serving/serving_step.hpp"

namespace orrery {

/// What --plan names stands in for the options that nobody gave: a file of orrery.deployment/1. Of
/// a search it brings model, engine, system, GPUs and, as --fix, the number formats. Errors: as
/// read_deployment_file().
void take_deployment_file(ParsedOptions& parsed);

/// --model, --system, --gpus, --engine, a key of a deployment each, and --step.
boost::program_options::options_description deployment_options();

/// The keys of a deployment alone.
DeploymentRequest read_deployment_flags(const ParsedOptions& parsed);

/// What they name. Errors: as of make_serving_setup().
ServingSetup read_serving_setup(const ParsedOptions& parsed);

/// What --step says: "64x4096+2048@512". Errors (bad_input): it says no iteration.
Iteration parse_iteration(const std::string& text);

}  // namespace orrery
