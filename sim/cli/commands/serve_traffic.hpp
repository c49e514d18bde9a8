#pragma once

#include "sim/analysis/serve/serving_run.hpp"
#include "sim/cli/options/options.hpp"

namespace orrery {

/// Options of `orrery serve` that say what clients ask, and how it is replayed.
boost::program_options::options_description traffic_options();

/// Whether they say anything of clients.
bool has_traffic(const ParsedOptions& parsed);

/// Replays what they say and prints what came of it.
int serve_traffic(const ParsedOptions& parsed, const ServingSetup& setup);

}  // namespace orrery
