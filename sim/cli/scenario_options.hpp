#pragma once

#include "sim/cli/options.hpp"
#include "sim/input/scenario.hpp"

namespace orrery {

/// --model, --system, --gpus, --plan and one option for every key of a plan.
boost::program_options::options_description scenario_options();
/// Those of them whose value may be left out.
std::vector<std::string> scenario_booleans();

/// Reads what the options name. A flag wins over the plan file.
Scenario read_scenario(const ParsedOptions& options);

}  // namespace orrery
