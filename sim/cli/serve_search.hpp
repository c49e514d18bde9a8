#pragma once

#include "sim/cli/options.hpp"

namespace orrery {

/// Options of `orrery serve` that say what is searched.
boost::program_options::options_description serve_search_options();

/// Searches the deployments that they allow for what clients do, and prints the best. `command`: as
/// it was typed, for reports.
int serve_search(const ParsedOptions& parsed, const std::string& command);

}  // namespace orrery
