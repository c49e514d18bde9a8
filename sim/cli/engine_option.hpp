#pragma once

#include "sim/cli/options.hpp"
#include "sim/engine/timeline.hpp"

namespace orrery {

/// --engine, to be added to the options of a command that simulates.
boost::program_options::options_description engine_option();
/// What it says; Engine::own where it is left out. Errors: another word.
Engine engine_of(const ParsedOptions& parsed);

}  // namespace orrery
