#pragma once

#include "sim/cli/options.hpp"

namespace orrery {

/// What --plan names stands in for the options that nobody gave: a file of orrery.deployment/1. Of
/// a search it brings model, engine, system, GPUs and, as --fix, the number formats. Errors: as
/// read_deployment_file().
void take_deployment_file(ParsedOptions& parsed);

}  // namespace orrery
