#pragma once

#include "sim/cli/options/options.hpp"

namespace orrery {

/// --ignore-memory, to be added to the options of a command that times the plan that it is given.
boost::program_options::options_description memory_option();
/// Detail::most_memory for such a command.
double memory_limit_of(const ParsedOptions& parsed);

}  // namespace orrery
