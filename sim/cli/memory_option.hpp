#pragma once

#include "sim/cli/options.hpp"
#include "sim/core/units.hpp"

namespace orrery {

/// --ignore-memory, to be added to the options of a command that times the plan that it is given.
boost::program_options::options_description memory_option();
/// Detail::most_memory for such a command.
double memory_limit_of(const ParsedOptions& parsed);

/// --host-memory of a command that may simulate much.
boost::program_options::options_description host_memory_option();
/// What a simulation may take of this machine's memory; half of it where nothing is said.
Bytes host_memory_of(const ParsedOptions& parsed);

}  // namespace orrery
